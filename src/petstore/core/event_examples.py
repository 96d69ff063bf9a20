"""An event of each type, for readers and for rehearsals."""

from __future__ import annotations

from typing import Any

from petstore.core.events import TYPES, Event, EventType, event_of
from petstore.core.journal import Entry

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


def example(kind: EventType) -> Event:
    """An event of a type, made of an entry as every event is."""
    subject_id, before, after = _ENTRIES[kind.name]
    subject, _, action = kind.entry_types[0].partition(".")
    number = _FIRST_ID + TYPES.index(kind)
    event = event_of(_DATA_SET, Entry(number, _AT_MS, "", subject, subject_id, action, before, after))
    assert event is not None, kind
    return event
