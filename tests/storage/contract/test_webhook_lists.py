"""Lists of webhooks for operators, and the end of those that a leaked key has made, in every store."""

from __future__ import annotations

import pytest

from petstore.core.webhooks import DisabledReason, Webhook, WebhookChange
from petstore.storage.store import Store
from tests.support.backends import through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.failing_webhooks import add_webhook, let_fail, note_attempts
from tests.support.journal import ACTOR, entries
from tests.support.webhooks import account

OFF = WebhookChange(enabled=False)


@pytest.fixture
async def made(store: Store) -> list[Webhook]:
    """The webhooks of `shop`: 1 and 3 by key 1, 4 by key 3; of `zoo` 2 by key 2."""
    for name in ("shop", "zoo"):
        await account(store, name)
    await store.keys.issue("shop", "test", ACTOR)
    return [await add_webhook(store, key_id) for key_id in (1, 2, 1, 3)]


async def test_pages_by_id(store: Store, made: list[Webhook]) -> None:
    """Pages are of all accounts or of one, from an id on."""
    assert await store.webhooks.page(9) == made
    assert await store.webhooks.page(2) == made[:2]
    assert await store.webhooks.page(2, after_id=2) == made[2:]
    assert await store.webhooks.page(9, 2) == [made[1]]
    assert await store.webhooks.page(2, 1, 1) == made[2:]


@through_pgbouncer_too
async def test_those_that_fail(store: Store, made: list[Webhook], clock: ManualClock) -> None:
    """Since their last success, and enabled: others get no tries."""
    for webhook in made[:3]:
        await let_fail(store, webhook.id, clock.now_ms() + webhook.id)
    await note_attempts(store, 1, [], None)
    await store.webhooks.change(3, OFF, ACTOR)
    (failing,) = await store.webhooks.page(9, failing=True)
    assert (failing.id, failing.failing_since_ms) == (2, clock.now_ms() + 2)
    assert await store.webhooks.page(9, 1, failing=True) == []
    assert await store.webhooks.failing(9) == [(failing, "zoo")]


@pytest.mark.usefixtures("made")
async def test_the_newest_failure_comes_first(store: Store, clock: ManualClock) -> None:
    """It has the account's name; a suspended account gets nothing, and is not listed."""
    now_ms = clock.now_ms()
    for webhook_id, at_ms in ((1, now_ms), (2, now_ms + 5), (3, now_ms + 9), (4, now_ms)):
        await let_fail(store, webhook_id, at_ms)
    found = [(webhook.id, name) for webhook, name in await store.webhooks.failing(9)]
    assert found == [(3, "shop"), (2, "zoo"), (4, "shop"), (1, "shop")]
    assert [webhook.id for webhook, _ in await store.webhooks.failing(2)] == [3, 2]
    await store.accounts.suspend("shop", ACTOR)
    assert [webhook.id for webhook, _ in await store.webhooks.failing(9)] == [2]


@pytest.mark.usefixtures("made")
class TestRevocation:
    """The webhooks end with the key that has made them."""

    async def test_it_ends_them(self, store: Store) -> None:
        """The operator ends them, with an entry each; other keys' go on, a disabled one stays as it is."""
        await store.webhooks.change(3, OFF, "api:shop/key 3")
        before = len(await entries(store))
        await store.keys.revoke(1, "cli:anna", with_webhooks=True)
        found = [webhook.disabled for webhook in await store.webhooks.page(9)]
        assert found == [DisabledReason.OPERATOR, None, DisabledReason.OWNER, None]
        written = [(entry.actor, f"{entry.type} {entry.about}") for entry in (await entries(store))[before:]]
        assert written == [("cli:anna", "webhook.disabled webhook:1"), ("cli:anna", "key.revoked key:1")]

    async def test_also_of_a_key_that_is_revoked(self, store: Store) -> None:
        """Who forgot them the first time says so the second time."""
        await store.keys.revoke(1, ACTOR)
        assert {webhook.disabled for webhook in await store.webhooks.page(9)} == {None}
        before = len(await entries(store))
        await store.keys.revoke(1, ACTOR, with_webhooks=True)
        assert {each.disabled for each in await store.webhooks.of_key(1)} == {DisabledReason.OPERATOR}
        assert [entry.type for entry in (await entries(store))[before:]] == ["webhook.disabled"] * 2
