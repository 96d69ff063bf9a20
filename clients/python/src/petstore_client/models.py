"""What the service returns. Unknown members are ignored: a later service may send more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, TypeVar, overload

T = TypeVar("T")

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

    `account` is the name of the one that placed it, in a list of all accounts' orders. `etag` names this
    state of it for `if_match`; it is empty in a list, which has none.
    """

    id: int
    pet_id: int
    quantity: int
    status: OrderStatus
    complete: bool
    ship_date: datetime | None = None
    account: str | None = None
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

    `after` is the bookmark behind them: give it to the next call. `is_behind`: there are further events by
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


def member(document: Any, name: str, kind: type[T]) -> T:
    """A member of a JSON object; raises ValueError when it is missing or of another type."""
    value = document.get(name) if isinstance(document, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{name} is missing or not {kind.__name__}")
    return value


def moment(document: Any, name: str) -> datetime:
    """A member that is a date-time (RFC 3339)."""
    return datetime.fromisoformat(member(document, name, str))


def optional_moment(document: Any, name: str) -> datetime | None:
    """A date-time that may be null or absent."""
    return None if document.get(name) is None else moment(document, name)


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
        account=None if document.get("account") is None else member(document, "account", str),
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


def read_array(read: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    """Reads a JSON array of such members."""

    def read_all(document: Any) -> tuple[T, ...]:
        if not isinstance(document, list):
            raise ValueError("not an array")
        return tuple(read(each) for each in document)

    return read_all
