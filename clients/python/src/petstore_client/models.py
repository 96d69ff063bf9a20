"""What the service returns. Unknown members are ignored: a later service may send more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, overload

from petstore_client.documents import member, moment, optional_member, optional_moment, read_array

# What may be sent. A later service may return other values; they are passed on as text.
PetStatus = Literal["available", "pending", "sold"]
OrderStatus = Literal["placed", "approved", "delivered", "cancelled"]
PetOrder = Literal["id", "-id"]
OrderScope = Literal["own", "all"]


@dataclass(frozen=True)
class Pet:
    """An animal. `etag` names this state of it for `if_match`; it is empty in a list, which has none."""

    id: int
    name: str
    category_id: int
    status: PetStatus
    etag: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Order:
    """An order of one animal. `ship_date` is None until it is delivered or staff give a date.

    `account` is the name of the one that placed it, in a list of all accounts' orders. `reference` is the
    text that it was placed with. `etag` names this state of it for `if_match`; a list has none: it is empty.
    """

    id: int
    pet_id: int
    quantity: int
    status: OrderStatus
    complete: bool
    ship_date: datetime | None = None
    account: str | None = None
    reference: str | None = None
    etag: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class Category:
    """A category that staff gave a name."""

    id: int
    name: str


@dataclass(frozen=True)
class Event:
    """A change, such as `pet.updated`. Ignore types that you do not know: there may be further ones.

    `data` has the `id` of the object, with all its members when it is new, else with those that changed;
    `previous` has what they were. Its members are named as in the contract, such as `categoryId`.
    """

    id: str
    type: str
    timestamp: datetime
    data: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True)
class EventPage(Sequence[Event]):
    """Events in their order, the oldest first.

    `after` is the bookmark after them: give it to the next call. `is_behind`: there are further events by
    now. `retry_after_seconds`: the call did not wait, since as many of the account's requests wait as may.
    """

    events: tuple[Event, ...]
    after: str
    is_behind: bool = False
    retry_after_seconds: float | None = None

    def __len__(self) -> int:
        return len(self.events)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Event, ...]: ...
    def __getitem__(self, index: int | slice) -> Event | tuple[Event, ...]:
        return self.events[index]


@dataclass(frozen=True)
class Webhook:
    """An address that gets events of these types, such as `pet.*`; `*` is all.

    When it is not `enabled`, `disabled_reason` says why: `owner`, `operator`, `failing` (no success for five
    days) or `gone` (it answered 410). `failing_since` is the first failed try since the last success.
    `key_id` is the key that made it. `etag` is as for an order; `rotate_secret` gives none.
    """

    id: int
    url: str
    types: tuple[str, ...]
    description: str
    enabled: bool
    disabled_reason: str | None
    failing_since: datetime | None
    key_id: int
    created_at: datetime
    etag: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class WebhookWithSecret(Webhook):
    """A webhook, new or with a new `secret`: keep it, since no later call shows it."""

    secret: str = field(default="", repr=False)


@dataclass(frozen=True)
class Delivery:
    """One try to send an event to a webhook.

    `status` is None when no answer came; then `fault` says why. `answer` is the beginning of its body, at
    most 1 KiB. A try that failed is repeated at `next_at`, unless it was the last.
    """

    event_id: str
    type: str
    at: datetime
    duration_ms: int
    status: int | None
    fault: str | None
    answer: str
    delivered: bool
    next_at: datetime | None


@dataclass(frozen=True)
class UsedWindow:
    """Requests used in a window of the limits."""

    used: int
    reset_at: datetime


@dataclass(frozen=True)
class KeyState:
    """The key that asked: `read`, `write` or `manage`, and when it expires."""

    access: str
    expires_at: datetime | None
    banned_until: datetime | None


@dataclass(frozen=True)
class UsageDay:
    """Requests of one UTC day."""

    date: date
    requests: int
    refused: int
    deprecated: int


@dataclass(frozen=True)
class Usage:
    """The account of the key: its plan, what is used, and the last 90 UTC days, newest first."""

    account: str
    plan: str
    per_minute: int
    per_day: int
    minute: UsedWindow
    day: UsedWindow
    key: KeyState
    days: tuple[UsageDay, ...]


def read_pet(document: Any) -> Pet:
    """A Pet of the contract."""
    status: Any = member(document, "status", str)
    return Pet(
        member(document, "id", int),
        member(document, "name", str),
        member(document, "categoryId", int),
        status,
    )


def read_order(document: Any) -> Order:
    """An Order of the contract."""
    status: Any = member(document, "status", str)
    return Order(
        id=member(document, "id", int),
        pet_id=member(document, "petId", int),
        quantity=member(document, "quantity", int),
        status=status,
        complete=member(document, "complete", bool),
        ship_date=optional_moment(document, "shipDate"),
        account=optional_member(document, "account", str),
        reference=optional_member(document, "reference", str),
    )


def read_category(document: Any) -> Category:
    """A Category of the contract."""
    return Category(member(document, "id", int), member(document, "name", str))


def read_event(document: Any) -> Event:
    """An Event of the contract."""
    return Event(
        member(document, "id", str),
        member(document, "type", str),
        moment(document, "timestamp"),
        member(document, "data", dict),
    )


def read_webhook(document: Any) -> Webhook:
    """A Webhook of the contract."""
    return Webhook(**_webhook(document))


def read_webhook_with_secret(document: Any) -> WebhookWithSecret:
    """A WebhookWithSecret of the contract."""
    return WebhookWithSecret(**_webhook(document), secret=member(document, "secret", str))


def _webhook(document: Any) -> dict[str, Any]:
    return {
        "id": member(document, "id", int),
        "url": member(document, "url", str),
        "types": tuple(map(str, member(document, "types", list))),
        "description": member(document, "description", str),
        "enabled": member(document, "enabled", bool),
        "disabled_reason": optional_member(document, "disabledReason", str),
        "failing_since": optional_moment(document, "failingSince"),
        "key_id": member(document, "keyId", int),
        "created_at": moment(document, "createdAt"),
    }


def read_delivery(document: Any) -> Delivery:
    """A Delivery of the contract."""
    return Delivery(
        event_id=member(document, "eventId", str),
        type=member(document, "type", str),
        at=moment(document, "at"),
        duration_ms=member(document, "durationMs", int),
        status=optional_member(document, "status", int),
        fault=optional_member(document, "fault", str),
        answer=member(document, "answer", str),
        delivered=member(document, "delivered", bool),
        next_at=optional_moment(document, "nextAt"),
    )


def read_usage(document: Any) -> Usage:
    """A Usage of the contract."""
    key = member(document, "key", dict)
    return Usage(
        account=member(document, "account", str),
        plan=member(document, "plan", str),
        per_minute=member(document, "perMinute", int),
        per_day=member(document, "perDay", int),
        minute=_used(member(document, "minute", dict)),
        day=_used(member(document, "day", dict)),
        key=KeyState(
            member(key, "access", str), optional_moment(key, "expiresAt"), optional_moment(key, "bannedUntil")
        ),
        days=read_array(_day)(member(document, "days", list)),
    )


def _used(document: Any) -> UsedWindow:
    return UsedWindow(member(document, "used", int), moment(document, "resetAt"))


def _day(document: Any) -> UsageDay:
    return UsageDay(
        date.fromisoformat(member(document, "date", str)),
        member(document, "requests", int),
        member(document, "refused", int),
        member(document, "deprecated", int),
    )
