"""Events: what clients learn of the journal's entries, and who sees which. They are stored nowhere else.

An event's id names the data set and the entry. A bookmark names the data set and a position: all that commits
later comes after it. Neither is ever used again: a restored store is another data set.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import msgspec

from petstore.core.errors import InvalidParameter
from petstore.core.fields import fields_of, published
from petstore.core.journal import STORE, Entry
from petstore.core.limits.plans import WINDOWS
from petstore.core.moments import iso_moment
from petstore.core.pets import NewPet
from petstore.core.values import INT64_MAX

WAIT_MAX_SECONDS = 120
# In place of a bookmark: this moment's bookmark.
NOW = "now"
# The type of the entry that ends all earlier bookmarks.
RESTORED = f"{STORE}.restored"

# The members of each subject that clients see; entries have others too. But for the store's, an entry without
# any is not an event.
_PUBLIC = {
    "pet": tuple(field.member for field in fields_of(published(NewPet))),
    "category": ("name",),
    "order": ("petId", "quantity", "reference", "shipDate", "status", "complete"),
    "account": ("name", "plan", *(window.limit_member for window in WINDOWS), "state"),
    "key": ("label", "access", "expiresAt", "replacedBy", "revokedAt", "bannedUntil"),
    "limit": ("limit", "used", "resetAt"),
    "webhook": ("enabled", "disabledReason"),
    STORE: (),
}
# The type of the entry of a test: an event for one webhook alone, which asked for it.
TESTED = "webhook.tested"
# Every account sees all events of these subjects; of others its own events.
SHARED = ("pet", "category", STORE)


class Shape(Enum):
    """What `data` has. Null is a member that was or is not there."""

    NOTHING = "nothing"
    ADDITION = "the id and all members"
    STATEMENT = "the members of the example"
    CHANGE = "the id, the members that changed, and as previous what they were"
    REMOVAL = "the id, and as previous all members"


class EventType(msgspec.Struct, frozen=True):
    """A type of event, the types of the entries that it is made of, and its `summary`, a sentence."""

    name: str
    entry_types: tuple[str, ...]
    summary: str
    shape: Shape = Shape.CHANGE

    @property
    def subject(self) -> str:
        return self.name.partition(".")[0]

    @property
    def is_shared(self) -> bool:
        """Whether every account sees all events of the type."""
        return self.subject in SHARED

    @property
    def members(self) -> tuple[str, ...]:
        """The members of its subject that `data` may have."""
        return _PUBLIC[self.subject]


TYPES = (
    EventType("pet.created", ("pet.added",), "An animal was added.", Shape.ADDITION),
    EventType("pet.updated", ("pet.changed",), "An animal has another name, category or status."),
    EventType("pet.deleted", ("pet.removed",), "An animal was removed.", Shape.REMOVAL),
    EventType("category.updated", ("category.named",), "A category got, changed or lost its name."),
    EventType("order.created", ("order.placed",), "An order of your account was placed.", Shape.ADDITION),
    EventType(
        "order.updated",
        ("order.approved", "order.delivered", "order.cancelled", "order.changed"),
        "An order of your account has another status or ship date.",
    ),
    EventType(
        "account.updated",
        ("account.plan_changed", "account.renamed"),
        "Your account has another plan, limit or name.",
    ),
    EventType("account.suspended", ("account.suspended",), "The operator has suspended your account."),
    EventType("account.resumed", ("account.resumed",), "The suspension of your account has ended."),
    EventType("account.closed", ("account.closed",), "The operator has closed your account."),
    EventType("key.issued", ("key.issued",), "Your account has a new key.", Shape.ADDITION),
    EventType("key.rotated", ("key.rotated",), "A key was replaced by another one, and expires."),
    EventType("key.revoked", ("key.revoked",), "A key was revoked."),
    EventType(
        "key.expiring",
        ("key.expiring",),
        "A key expires within 14 days, and again within 3.",
        Shape.STATEMENT,
    ),
    EventType("key.banned", ("key.banned",), "A key is banned for a while: it went on after many refusals."),
    EventType("key.unbanned", ("key.unbanned",), "The operator has lifted a key's ban."),
    EventType(
        "limit.approaching",
        ("account.limit_approaching",),
        "Your account has used 80 % of its requests of a UTC day.",
        Shape.STATEMENT,
    ),
    EventType(
        "limit.reached",
        ("account.limit_reached",),
        "A request was refused: your account has used all its requests of a UTC day.",
        Shape.STATEMENT,
    ),
    EventType(
        "webhook.disabled",
        ("webhook.disabled",),
        "A webhook was disabled: by you or the operator, after five days of failures, or by its answer 410.",
    ),
    EventType("webhook.test", (TESTED,), "A test of this one webhook, which asked for it.", Shape.STATEMENT),
    EventType(
        "store.restored",
        ("store.restored",),
        "The store was restored from a copy, and may lack its last changes. List the animals anew.",
        Shape.NOTHING,
    ),
)
BY_ENTRY = {entry: kind for kind in TYPES for entry in kind.entry_types}
# The patterns that a client may ask for, with the types of their entries: `pet.*`, or `pet.created`.
PATTERNS = {
    f"{subject}.*": frozenset(each for kind in TYPES if kind.subject == subject for each in kind.entry_types)
    for subject in dict.fromkeys(kind.subject for kind in TYPES)
} | {kind.name: frozenset(kind.entry_types) for kind in TYPES}


class Event(msgspec.Struct, frozen=True):
    """An event as clients see it."""

    id: str
    type: str
    timestamp: str
    data: dict[str, Any]


class Position(msgspec.Struct, frozen=True, order=True):
    """A place in the order of events: by transaction, then by entry. The default is the beginning.

    `transaction` is 0 where entries are in the order of their ids: on SQLite, and if they came with the data.
    """

    transaction: int = 0
    id: int = 0


class Bookmark(msgspec.Struct, frozen=True):
    """A place between events of one data set. As text it is opaque to clients."""

    data_set: str
    position: Position

    def __str__(self) -> str:
        return f"{self.data_set}-{self.position.transaction}-{self.position.id}"


_BOOKMARK = re.compile(r"([0-9a-f]{12})-([0-9]{1,19})-([0-9]{1,19})", re.ASCII)
_EVENT_ID = re.compile(r"evt_([0-9a-f]{12})_([1-9][0-9]{0,18})", re.ASCII)


def bookmark_fault(text: str) -> str | None:
    """What is wrong with the text of a Bookmark, as a phrase; None for one."""
    found = _BOOKMARK.fullmatch(text)
    if found is not None and max(int(found[2]), int(found[3])) <= INT64_MAX:
        return None
    return "expected now, or the bookmark in the Link of an earlier answer, not an event's id"


def read_bookmark(text: str) -> Bookmark:
    """Raises InvalidParameter for what is not the text of a Bookmark."""
    if fault := bookmark_fault(text):
        raise InvalidParameter(f"after: {fault}.")
    data_set, transaction, number = text.split("-")
    return Bookmark(data_set, Position(int(transaction), int(number)))


def event_id_of(data_set: str, entry_id: int) -> str:
    """The id of an event, for ever its own."""
    return f"evt_{data_set}_{entry_id}"


def read_event_id(text: str) -> tuple[str, int] | None:
    """The data set and the entry; None for what is not an event's id."""
    found = _EVENT_ID.fullmatch(text)
    return (found[1], int(found[2])) if found and int(found[2]) <= INT64_MAX else None


def event_of(data_set: str, entry: Entry) -> Event | None:
    """What clients see of an entry that has a type; None where nothing of it is public."""
    kind = BY_ENTRY[entry.type]
    public = _PUBLIC[kind.subject]
    before, after = (_shown(members, public) for members in (entry.before, entry.after))
    if not before and not after and public and entry.type != TESTED:
        return None
    data: dict[str, Any] = {"id": entry.subject_id} if public else {}
    if kind.shape in (Shape.ADDITION, Shape.STATEMENT):
        data |= after
    elif kind.shape is Shape.REMOVAL:
        data["previous"] = before
    elif kind.shape is Shape.CHANGE:
        changed = [name for name in public if name in before or name in after]
        data |= {name: after.get(name) for name in changed}
        data["previous"] = {name: before.get(name) for name in changed}
    return Event(event_id_of(data_set, entry.id), kind.name, iso_moment(entry.at_ms), data)


def _shown(members: dict[str, Any] | None, public: tuple[str, ...]) -> dict[str, Any]:
    return {name: members[name] for name in public if name in members} if members else {}


def read_types(patterns: Iterable[str]) -> frozenset[str]:
    """The types of the entries of events that match one pattern, without any of all events.

    Raises InvalidParameter for what is not in PATTERNS."""
    patterns = tuple(patterns) or tuple(PATTERNS)
    try:
        return frozenset().union(*(PATTERNS[pattern] for pattern in patterns))
    except KeyError:
        raise InvalidParameter(f"type: expected {', '.join(PATTERNS)}.") from None


class EventQuery(msgspec.Struct, frozen=True):
    """The events to read, in their order: at most `limit`, those that `account_id` sees; None sees all.

    `entry_types` are the types of their entries. `after` is where to begin; None: the journal's first entry.
    """

    limit: int
    account_id: int | None
    entry_types: frozenset[str] = frozenset(BY_ENTRY)
    after: Bookmark | None = None


class EventPage(msgspec.Struct, frozen=True):
    """Events in their order. `after` is the bookmark of the next page; `is_behind`: it has entries by now.
    `positions` has the position of each event."""

    events: list[Event]
    after: Bookmark
    is_behind: bool
    positions: Sequence[Position] = ()


class Held(msgspec.Struct, frozen=True):
    """What waits for a transaction that began before it: for how long the oldest has waited, and for whom."""

    seconds: float
    by: str


class EntrySummary(msgspec.Struct, frozen=True):
    """What came after a position: types of entries with the account that sees them (None: every account)."""

    types_and_owners: frozenset[tuple[str, int | None]]
    position: Position
