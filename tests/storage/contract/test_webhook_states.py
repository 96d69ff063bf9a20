"""What operators watch of a store's webhooks: how they do, and how long the oldest event has waited."""

from __future__ import annotations

import pytest

from petstore.core.limits.plans import PRO
from petstore.core.pets import NewPet
from petstore.core.webhooks import DisabledReason, WebhookChange, WebhookHealth
from petstore.storage.store import Store
from tests.storage.contract.test_events import settled
from tests.support.backends import through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.failing_webhooks import add_webhook, settle
from tests.support.journal import ACTOR
from tests.support.webhooks import account

REX = NewPet("Rex", 1)
FAILED = WebhookHealth(1, 1)


@pytest.fixture(autouse=True)
async def shop(store: Store) -> None:
    """An account with a key."""
    await account(store, "shop", PRO)


async def webhook(store: Store) -> int:
    return (await add_webhook(store)).id


async def waited(store: Store) -> float:
    await settled(store)
    return (await store.deliverers.states())[1]


@through_pgbouncer_too
async def test_webhooks_are_counted_by_how_they_do(store: Store) -> None:
    """One that fails and is disabled is disabled."""
    assert await store.deliverers.states() == ({"healthy": 0, "failing": 0, "disabled": 0}, 0)
    for _ in range(6):
        await webhook(store)
    for failing in (1, 2, 6):
        await settle(store, failing, FAILED)
    for disabled in (3, 6):
        await store.webhooks.change(disabled, WebhookChange(enabled=False), ACTOR)
    assert (await store.deliverers.states())[0] == {"healthy": 2, "failing": 2, "disabled": 2}


async def test_the_oldest_event_that_a_healthy_webhook_has_not_got(store: Store, clock: ManualClock) -> None:
    """The age of the first change after the bookmark of the webhook that is furthest behind; 0 once all have
    everything."""
    first, second = await webhook(store), await webhook(store)
    got_all = await store.events.newest()
    await settle(store, first, WebhookHealth(), got_all)
    await settle(store, second, WebhookHealth(), got_all)
    assert await waited(store) == 0
    await store.pets.add(REX, ACTOR)
    clock.advance(10)
    await store.pets.add(REX, ACTOR)
    clock.advance(5)
    assert await waited(store) == 15
    await settle(store, first, WebhookHealth(), await store.events.newest())
    assert await waited(store) == 15
    await settle(store, second, WebhookHealth(), (await store.events.newest(1)))
    assert await waited(store) == 5
    await settle(store, second, WebhookHealth(), await store.events.newest())
    assert await waited(store) == 0


@pytest.mark.parametrize("cause", ["failing", "disabled", "suspended"])
async def test_events_that_this_service_does_not_owe_count_not(
    store: Store, clock: ManualClock, cause: str
) -> None:
    """Events for a webhook that fails, is disabled, or is of a suspended account do not count as waiting,
    beside a webhook that does well and has everything."""
    hook, other = await webhook(store), await webhook(store)
    await store.pets.add(REX, ACTOR)
    clock.advance(60)
    await settle(store, other, WebhookHealth(), await store.events.newest())
    assert await waited(store) >= 60
    if cause == "failing":
        await settle(store, hook, FAILED)
    elif cause == "disabled":
        await store.webhooks.change(hook, WebhookChange(enabled=False), ACTOR, reason=DisabledReason.OPERATOR)
    else:
        await store.accounts.suspend("shop", ACTOR)
    if cause != "suspended":
        await settle(store, other, WebhookHealth(), await store.events.newest())
    assert await waited(store) == 0


async def test_after_a_restore_the_events_since_count(store: Store, clock: ManualClock) -> None:
    """It is so until the next delivery: the former places are of other data."""
    hook = await webhook(store)
    await settle(store, hook, WebhookHealth(), await store.events.newest())
    await store.events.note_restore(ACTOR)
    clock.advance(30)
    assert await waited(store) >= 30
    await settle(store, hook, WebhookHealth(), await store.events.newest())
    assert await waited(store) == 0
