"""What a deliverer needs of a webhook, and what it notes of its tries."""

from __future__ import annotations

import msgspec

from petstore.core.events import Bookmark
from petstore.core.webhooks import DisabledReason, Repetition, Standing, Try


class OwnedWebhook(msgspec.Struct, frozen=True):
    """What a deliverer needs of a webhook. `secrets` are sealed; `after` is where it goes on; another
    `revision` is that of another one who has moved, ended or begun its deliveries."""

    id: int
    revision: int
    account_id: int
    url: str
    types: tuple[str, ...]
    secrets: str
    after: Bookmark
    standing: Standing


class Receiver(msgspec.Struct, frozen=True):
    """A webhook with its sealed secrets."""

    id: int
    url: str
    secrets: str


class Settled(msgspec.Struct, frozen=True):
    """What came of the tries of a webhook: where it goes on, and what to repeat and no more to repeat."""

    after: Bookmark
    standing: Standing
    tries: list[Try]
    again: list[Repetition]
    over: list[Repetition]
    disabled: DisabledReason | None = None
