"""What every store of accounts and keys does."""

from __future__ import annotations

import asyncio

import pytest

from petstore.core.accounts import Account
from petstore.core.digests import digest
from petstore.core.durations import DAY_MS
from petstore.core.errors import Conflict, IdempotencyKeyInUse, NotFound
from petstore.core.idempotency import IdempotencyKey
from petstore.core.keys import Access, ApiKey, Caller, IssuedKey, KeyIssuedBefore, is_wellformed
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE, PRO
from petstore.core.limits.usage import UsageChanges
from petstore.storage.store import Store
from tests.support.backends import SharedData
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR, entries
from tests.support.windows import limits_of


async def caller_of(store: Store, secret: str) -> Caller:
    caller = await store.keys.find_caller(digest(secret.encode()))
    assert caller is not None
    return caller


class TestAccounts:
    """Add, find, list, change the plan."""

    async def test_an_account_is_found_by_name_and_by_id(self, store: Store, clock: ManualClock) -> None:
        """Both references mean the same account. Its entry has the plan with its numbers."""
        assert await store.is_empty()
        added = await store.accounts.add("shop", FREE, ACTOR)
        assert added == Account(1, "shop", FREE, clock.now_ms())
        assert await store.accounts.find("shop") == await store.accounts.find("1") == added
        assert not await store.is_empty()
        (entry,) = await entries(store)
        assert entry.after == {"name": "shop", "plan": "free", "perMinute": 60, "perDay": 1_000}

    async def test_a_reference_to_nothing(self, store: Store) -> None:
        """NotFound from every method that takes one."""
        await store.accounts.add("shop", FREE, ACTOR)
        for reference in ("nobody", "2", "0", "-1", "1.0", "01 ", "", "\uff19", "9" * 30, "a'b", "\x00"):
            for attempt in (
                store.accounts.find(reference),
                store.accounts.set_plan(reference, PRO, ACTOR),
                store.accounts.suspend(reference, ACTOR),
                store.accounts.resume(reference, ACTOR),
                store.accounts.rename(reference, "zoo", ACTOR),
                store.accounts.close(reference, ACTOR),
                store.keys.issue(reference, "test", ACTOR),
                store.keys.of_account(reference),
            ):
                with pytest.raises(NotFound, match="There is no account"):
                    await attempt


class TestIssue:
    """A key's text is handed out once; the store keeps its digest."""

    async def test_an_issued_key_opens_its_account(self, store: Store, clock: ManualClock) -> None:
        """Record, display and caller belong together."""
        await store.accounts.add("shop", FREE, ACTOR)
        issued = await store.keys.issue("shop", "live", ACTOR, label="till", expires_at_ms=clock.now_ms() + 5)
        assert is_wellformed(issued.secret)
        assert issued.secret.startswith("pets_live_")
        assert issued.record == ApiKey(
            1, 1, "till", f"pets_live_…{issued.secret[-4:]}", clock.now_ms(), clock.now_ms() + 5
        )
        assert await caller_of(store, issued.secret) == Caller(
            1, 1, limits_of(60, 1_000), clock.now_ms() + 5, account="shop", plan="free"
        )
        found = await store.keys.by_digest(digest(issued.secret.encode()))
        assert found == await store.keys.get(1) == issued.record

    async def test_keys_are_listed_by_account_in_the_order_of_their_ids(self, store: Store) -> None:
        """An account's keys are listed in the order of their ids, and no other account's keys among them."""
        for name in ("a", "b"):
            await store.accounts.add(name, FREE, ACTOR)
        for reference in ("a", "b", "1", "2", "a"):
            await store.keys.issue(reference, "test", ACTOR)
        assert [key.id for key in await store.keys.of_account("a")] == [1, 3, 5]
        assert [key.id for key in await store.keys.of_account("2")] == [2, 4]
        assert [key.id for key in await store.keys.of_account("a", newest=2)] == [3, 5]
        assert [key.id for key in await store.keys.of_account("a", newest=1, before_id=5)] == [3]

    async def test_no_key_stands_in_the_database(self, backend: SharedData, store: Store) -> None:
        """I18: not in a table, not in the file, not in its log."""
        await store.accounts.add("shop", FREE, ACTOR)
        secrets = [(await store.keys.issue("shop", "live", ACTOR)).secret for _ in range(3)]
        secrets.append((await store.keys.rotate(1, "live", 1_000, ACTOR)).secret)
        rows = str(backend.execute("SELECT * FROM api_keys"))
        for secret in secrets:
            assert secret not in rows
            assert secret[10:42] not in rows


class TestRotate:
    """A successor of the same account and label; the old key works on for the overlap."""

    @pytest.fixture(autouse=True)
    async def _account(self, store: Store) -> None:
        await store.accounts.add("shop", FREE, ACTOR)

    @every_case(
        ("lasts_ms", "old_ms", "new_ms"),
        [(None, DAY_MS, None), (1_000, 1_000, 1_000), (30 * DAY_MS, DAY_MS, 30 * DAY_MS)],
    )
    async def test_when_both_keys_end(
        self, store: Store, clock: ManualClock, lasts_ms: int | None, old_ms: int, new_ms: int | None
    ) -> None:
        """The old one with the overlap, and never later than it was to; the new one when the old one was to
        end: a key for a trial does not become one for good."""
        begins_ms = clock.now_ms()
        ends_ms = None if lasts_ms is None else begins_ms + lasts_ms
        old = await store.keys.issue("shop", "live", ACTOR, label="till", expires_at_ms=ends_ms)
        new = await store.keys.rotate(old.record.id, "live", DAY_MS, ACTOR)
        assert new.secret != old.secret
        assert await store.keys.get(new.record.id) == new.record
        assert (new.record.account_id, new.record.label) == (1, "till")
        assert new.record.expires_at_ms == (None if new_ms is None else begins_ms + new_ms)
        assert (await store.keys.get(old.record.id)).expires_at_ms == begins_ms + old_ms

    @every_case("access", Access)
    async def test_the_level_is_the_callers_and_stays(self, store: Store, access: Access) -> None:
        """A successor may do what its predecessor may, and no more."""
        old = await store.keys.issue("shop", "live", ACTOR, access=access)
        new = await store.keys.rotate(old.record.id, "live", DAY_MS, ACTOR)
        for issued in (old, new):
            caller = await caller_of(store, issued.secret)
            stored = await store.keys.get(issued.record.id)
            assert caller.access is stored.access is issued.record.access is access

    async def test_a_key_is_rotated_once(self, store: Store, backend: SharedData, clock: ManualClock) -> None:
        """Six operators try at once, through two processes, and one does; the others learn of the successor,
        and later ones of the key that works now, or that none does."""
        await store.keys.issue("shop", "live", ACTOR)
        stores = [store, backend.open()]
        # With open connections they meet.
        await asyncio.gather(*(stores[number % 2].accounts.find("shop") for number in range(6)))
        results = await asyncio.gather(
            *(stores[number % 2].keys.rotate(1, "live", DAY_MS, ACTOR) for number in range(6)),
            return_exceptions=True,
        )
        assert sum(isinstance(each, IssuedKey) for each in results) == 1
        told = {each.message for each in results if isinstance(each, Conflict)}
        assert told == {"Key 1 was replaced by key 2 on 2027-01-15; rotate that one, or issue a new key."}
        assert len(await store.keys.of_account("shop")) == 2

        clock.advance(2 * DAY_MS / 1_000)  # the old key's overlap is over
        await store.keys.rotate(2, "live", DAY_MS, ACTOR)
        with pytest.raises(Conflict, match="Key 1 was replaced by key 3 on 2027-01-17; rotate that one"):
            await store.keys.rotate(1, "live", DAY_MS, ACTOR)
        await store.keys.revoke(3, ACTOR)
        with pytest.raises(Conflict, match="by key 3 on 2027-01-17, which is revoked; issue a new key"):
            await store.keys.rotate(2, "live", DAY_MS, ACTOR)
        assert len(await store.keys.of_account("shop")) == 3


@pytest.mark.parametrize("rotates", [False, True])
async def test_a_form_that_is_sent_again_issues_no_other_key(
    store: Store, backend: SharedData, rotates: bool
) -> None:
    """A repetition creates no key and names the first one's, at once and through another store too.
    Another account's form and another form are not repetitions."""
    for name in ("shop", "other"):
        await store.accounts.add(name, FREE, ACTOR)
    old = await store.keys.issue("shop", "live", ACTOR)
    stores = [store, backend.open()]

    async def issue(number: int, once: IdempotencyKey) -> IssuedKey:
        keys = stores[number % 2].keys
        if rotates:
            return await keys.rotate(old.record.id, "live", DAY_MS, ACTOR, once)
        return await keys.issue("shop", "live", ACTOR, label=f"{number}", idempotency_key=once)

    once = IdempotencyKey(1, "form")
    results = await asyncio.gather(*(issue(number, once) for number in range(6)), return_exceptions=True)
    (issued,) = [each for each in results if isinstance(each, IssuedKey)]
    refused = [each for each in results if each is not issued]
    assert all(isinstance(each, KeyIssuedBefore | IdempotencyKeyInUse) for each in refused)
    with pytest.raises(KeyIssuedBefore, match="was issued already, and its text is shown only once"):
        await issue(0, once)
    assert [key.id for key in await store.keys.of_account("shop")] == [old.record.id, issued.record.id]
    another = IdempotencyKey(1, "another form")
    if rotates:
        with pytest.raises(Conflict, match="was replaced by key 2"):
            await issue(0, another)
    else:
        await issue(0, another)
    await stores[1].keys.issue("other", "live", ACTOR, idempotency_key=IdempotencyKey(2, "form"))


class TestRevokeAndPardon:
    """Marks on a key's record."""

    async def test_a_revocation_is_on_the_next_caller_and_keeps_its_time(
        self, store: Store, clock: ManualClock
    ) -> None:
        """A second one changes nothing. Keys that are looked up together are told apart."""
        await store.accounts.add("shop", FREE, ACTOR)
        secret, other = [(await store.keys.issue("shop", "live", ACTOR)).secret for _ in range(2)]
        first_ms = clock.now_ms()
        assert (await store.keys.revoke(1, ACTOR)).revoked_at_ms == first_ms
        clock.advance(10)
        assert (await store.keys.revoke(1, ACTOR)).revoked_at_ms == first_ms
        # PostgreSQL looks up the first one, and then the others at once.
        callers = await asyncio.gather(*(caller_of(store, each) for each in (secret, other, secret)))
        assert [caller.revoked_at_ms for caller in callers] == [first_ms, None, first_ms]

    async def test_a_pardon_is_on_the_next_caller_and_clears_the_counter_store(
        self, store: Store, clock: ManualClock
    ) -> None:
        """The BanState that was written is gone, those of other keys stay."""
        await store.accounts.add("shop", FREE, ACTOR)
        secret = (await store.keys.issue("shop", "live", ACTOR)).secret
        await store.keys.issue("shop", "live", ACTOR)
        banned = BanState(level=2, banned_from_ms=clock.now_ms(), banned_until_ms=clock.now_ms() + 9_000)
        await store.counters.save(LimiterState({}, {1: banned, 2: banned}), UsageChanges())
        await store.keys.pardon(1, ACTOR)
        caller = await caller_of(store, secret)
        assert caller.pardoned_at_ms == clock.now_ms()
        assert (await store.counters.load(clock.now_ms())).bans == {2: banned}
        assert [ban.key_id for ban in (await store.usage.report(clock.now_ms(), 1)).bans] == [2]

    async def test_each_pardon_is_later_than_the_one_before(self, store: Store, clock: ManualClock) -> None:
        """It is when the clock was set back: else the limiter would take it for one that it knows."""
        await store.accounts.add("shop", FREE, ACTOR)
        secret = (await store.keys.issue("shop", "live", ACTOR)).secret
        pardons = []
        for step in (0, -86_400, 0):
            clock.advance(step)
            await store.keys.pardon(1, ACTOR)
            caller = await caller_of(store, secret)
            pardons.append(caller.pardoned_at_ms)
        assert pardons == sorted(set(pardons))
