"""What the page of events shows: the types of core/events.py by their subjects, each with an example."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import msgspec

from petstore.core.events import TYPES, Event, EventType, event_of
from petstore.core.journal import Entry
from petstore.site.documents import Heading

_Members = dict[str, Any] | None

_DATA_SET, _FIRST_ID, _AT_MS = "9f86d081884c", 1_206, 1_795_383_943_045
# An entry that each type is made of: the number of its subject, and what changed, as the journal has it.
_ENTRIES: dict[str, tuple[int, _Members, _Members]] = {
    "pet.created": (7, None, {"name": "Rex", "categoryId": 1, "status": "available"}),
    "pet.updated": (7, {"status": "pending"}, {"status": "sold"}),
    "pet.deleted": (7, {"name": "Rex", "categoryId": 1, "status": "sold"}, None),
    "category.updated": (1, None, {"name": "Dogs"}),
    "order.created": (
        5,
        None,
        {"petId": 7, "quantity": 1, "reference": "PO-4711", "status": "placed", "complete": False},
    ),
    "order.updated": (
        5,
        {"status": "approved", "complete": False},
        {"status": "delivered", "complete": True, "shipDate": "2026-11-22T21:45:43.045Z"},
    ),
    "account.updated": (
        2,
        {"plan": "free", "perMinute": 60, "perDay": 1_000},
        {"plan": "pro", "perMinute": 300, "perDay": 10_000},
    ),
    "account.suspended": (2, {"state": "active"}, {"state": "suspended"}),
    "account.resumed": (2, {"state": "suspended"}, {"state": "active"}),
    "account.closed": (2, {"state": "active"}, {"state": "closed"}),
    "key.issued": (3, None, {"label": "web site", "access": "read", "expiresAt": None}),
    "key.rotated": (
        3,
        {"expiresAt": None, "replacedBy": None},
        {"expiresAt": "2026-11-23T21:45:43.045Z", "replacedBy": 4},
    ),
    "key.revoked": (3, {"revokedAt": None}, {"revokedAt": "2026-11-22T21:45:43.045Z"}),
    "key.expiring": (3, None, {"label": "web site", "expiresAt": "2026-12-06T21:45:43.045Z"}),
    "key.banned": (3, {"bannedUntil": None}, {"bannedUntil": "2026-11-22T22:00:00.000Z"}),
    "key.unbanned": (3, {"bannedUntil": "2026-11-22T22:00:00.000Z"}, {"bannedUntil": None}),
    "limit.approaching": (2, None, {"limit": 1_000, "used": 800, "resetAt": "2026-11-23T00:00:00.000Z"}),
    "limit.reached": (2, None, {"limit": 1_000, "used": 1_000, "resetAt": "2026-11-23T00:00:00.000Z"}),
    "webhook.disabled": (
        1,
        {"enabled": True, "disabledReason": None},
        {"enabled": False, "disabledReason": "failing"},
    ),
    "webhook.test": (1, None, {}),
    "store.restored": (0, None, {}),
}


class Kind(msgspec.Struct, frozen=True):
    """A type of event. `data` says what its member of this name has, `example` is JSON."""

    name: str
    what: str
    data: str
    example: str


class Group(msgspec.Struct, frozen=True):
    """The types with one subject. `members` are those that an event may have of it."""

    name: str
    is_shared: bool
    members: tuple[str, ...]
    kinds: list[Kind]


def read() -> list[Group]:
    """All types, in the order of the table."""
    return [
        Group(f"{subject}.*", kinds[0].is_shared, kinds[0].members, [_kind(kind) for kind in kinds])
        for subject, kinds in ((name, list(each)) for name, each in groupby(TYPES, lambda kind: kind.subject))
    ]


def contents(groups: list[Group]) -> list[Heading]:
    """The groups and their types, for a list of contents."""
    return [
        Heading(level, name, name)
        for group in groups
        for level, name in ((2, group.name), *((3, kind.name) for kind in group.kinds))
    ]


def example(kind: EventType) -> Event:
    """An event of a type, made of an entry as every event is."""
    subject_id, before, after = _ENTRIES[kind.name]
    subject, _, action = kind.entries[0].partition(".")
    number = _FIRST_ID + TYPES.index(kind)
    event = event_of(_DATA_SET, Entry(number, _AT_MS, "", subject, subject_id, action, before, after))
    assert event is not None, kind
    return event


def _kind(kind: EventType) -> Kind:
    event = example(kind)
    text = json.dumps(msgspec.to_builtins(event), indent=2, ensure_ascii=False)
    return Kind(kind.name, kind.what, _data(kind, event.data), text)


def _data(kind: EventType, data: dict[str, Any]) -> str:
    if not data:
        return "nothing"
    if kind.name.endswith((".created", ".issued")):
        return "the id and all members"
    if "previous" not in data:
        return "the members of the example"
    if data.keys() == {"id", "previous"}:
        return "the id, and as previous all members"
    return "the id, the members that changed, and as previous what they were"
