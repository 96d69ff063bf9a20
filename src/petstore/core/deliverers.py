"""What a deliverer needs of a webhook, and what it saves of its attempts."""

from __future__ import annotations

import msgspec

from petstore.core.events import Bookmark
from petstore.core.webhooks import DeliveryAttempt, DisabledReason, Repetition, WebhookHealth


class OwnedWebhook(msgspec.Struct, frozen=True):
    """A webhook as its deliverer has it. `secrets` are encrypted; deliveries go on after the bookmark
    `after`. Each move, end or new owner of the deliveries counts `revision` up."""

    id: int
    revision: int
    account_id: int
    url: str
    types: tuple[str, ...]
    secrets: str
    after: Bookmark
    health: WebhookHealth


class Receiver(msgspec.Struct, frozen=True):
    """A webhook with its encrypted secrets."""

    id: int
    url: str
    secrets: str


class Settled(msgspec.Struct, frozen=True):
    """The outcome of a webhook's attempts: deliveries go on after the bookmark `after`."""

    after: Bookmark
    health: WebhookHealth
    attempts: list[DeliveryAttempt]
    new_repetitions: list[Repetition]
    ended_repetitions: list[Repetition]
    disabled_reason: DisabledReason | None = None
