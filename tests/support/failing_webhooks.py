"""Webhooks whose attempts fail, or did: what a deliverer would have noted."""

from __future__ import annotations

from collections.abc import Sequence

from petstore.core.deliverers import Settled
from petstore.core.events import Bookmark
from petstore.core.webhooks import DeliveryAttempt, NewWebhook, Webhook, WebhookHealth
from petstore.storage.store import Store
from tests.support.journal import ACTOR

URL = "https://shop.example/hook"
_OWNER = "tests"


async def add_webhook(store: Store, key_id: int = 1, url: str = URL, description: str = "") -> Webhook:
    """One that the key has made."""
    key = await store.keys.get(key_id)
    new = NewWebhook(url, description=description)
    return (await store.webhooks.create(key.account_id, key_id, new, "sealed", ACTOR))[0]


async def settle(
    store: Store,
    webhook_id: int,
    health: WebhookHealth,
    after: Bookmark | None = None,
    attempts: Sequence[DeliveryAttempt] = (),
) -> None:
    """Save its health, the outcomes of attempts and, unless it stays, where it goes on."""
    await store.deliverers.claim(_OWNER, [], is_alone=True)
    owned = await store.deliverers.owned(_OWNER)
    (webhook,) = [each for each in owned.webhooks if each.id == webhook_id]
    found = Settled(after or webhook.after, health, list(attempts), [], [])
    assert await store.deliverers.settle(_OWNER, webhook, found)


async def note_attempts(
    store: Store, webhook_id: int, attempts: list[DeliveryAttempt], since_ms: int | None
) -> None:
    """The outcomes of attempts, oldest first. `since_ms`: since when it fails; None: it does not."""
    health = WebhookHealth(len(attempts), since_ms) if since_ms is not None else WebhookHealth()
    await settle(store, webhook_id, health, attempts=attempts)


async def let_fail(
    store: Store,
    webhook_id: int,
    at_ms: int,
    fault: str = "Expected a status from 200 to 299, got 500.",
    answer: str = "Internal Server Error",
    event_id: str = "evt_0f3a9c2b5d7e_1",
) -> None:
    """One try that failed; it fails since then."""
    failed = DeliveryAttempt(event_id, "pet.updated", at_ms, 120, 500, fault, answer, at_ms + 5_000)
    await note_attempts(store, webhook_id, [failed], at_ms)
