"""The last refused requests of each account: what is kept, in which order, and what is not."""

from __future__ import annotations

from msgspec.structs import replace

from petstore.core.refusals import REFUSALS_KEPT, Refusal
from petstore.storage.store import Store
from tests.storage.contract.test_retention import remove
from tests.support.backends import through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.webhooks import account

DAY = 86_400
ONE = Refusal(1, 1_000, 1, "GET", "/pets/{petId}", 429, "rate_limited", "minute", "192.0.2.7")


@through_pgbouncer_too
async def test_the_last_twenty_of_each_account_are_kept(store: Store) -> None:
    """Newest first, with the key's end, whole or with what may be unknown; however many come at once."""
    for name in "ab":
        await account(store, name)
    first = [replace(ONE, at_ms=at, account_id=1 + at % 2, key_id=1 + at % 2) for at in range(30)]
    await store.refusals.add(first)
    await store.refusals.add([replace(ONE, at_ms=at) for at in range(100, 112)])
    last = replace(ONE, at_ms=111, method="other", path=None, of_window=None, address=None, code="forbidden")
    await store.refusals.add([last])
    found = await store.refusals.last(1)
    shown = (await store.keys.get(1)).display
    assert [each.at_ms for each in found] == [111, *range(111, 99, -1), *range(28, 14, -2)]
    assert found[0] == replace(last, display=shown)
    assert found[1] == replace(ONE, at_ms=111, display=shown)
    assert len(found) == REFUSALS_KEPT
    assert [each.at_ms for each in await store.refusals.last(2)] == list(range(29, 0, -2))


async def test_a_closed_account_keeps_none(store: Store) -> None:
    """They are removed, and what a process saves a moment later does not come in."""
    await account(store, "a")
    await account(store, "b")
    await store.refusals.add([ONE, replace(ONE, account_id=2)])
    await store.accounts.close("a", ACTOR)
    await store.refusals.add([ONE])
    assert [len(await store.refusals.last(number)) for number in (1, 2)] == [0, 1]


async def test_those_of_thirty_days_are_kept(store: Store, clock: ManualClock) -> None:
    """Whether changes are kept for ever or not."""
    await account(store, "a")
    clock.advance(100 * DAY)
    since_ms = clock.now_ms() - 30 * DAY * 1_000
    await store.refusals.add([replace(ONE, at_ms=since_ms + late) for late in (-2, -1, 0, 1)])
    await remove(store, clock, None)
    assert [each.at_ms - since_ms for each in await store.refusals.last(1)] == [1, 0]
