"""Events that have not happened, and are sent to webhooks in staging."""

from __future__ import annotations

import secrets
from typing import Annotated

import msgspec
from msgspec.structs import replace

from petstore.core.event_examples import example
from petstore.core.events import TESTED, TYPES, Event, event_id_of
from petstore.core.fields import Text
from petstore.core.members import Schema
from petstore.core.moments import iso_moment
from petstore.core.values import INT64_MAX

# No store has this data set, so that no real event has the id of a rehearsed one.
_DATA_SET = "0" * 12
# A test comes by testWebhook, to one webhook alone.
EVENT_TYPES = {kind.name: kind for kind in TYPES if kind.entry_types != (TESTED,)}


def _type_fault(text: str) -> str | None:
    return None if text in EVENT_TYPES else f"expected one of {', '.join(EVENT_TYPES)}"


class EventRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for an event of a type."""

    type: Annotated[str, Text(_type_fault)]


EVENT_REQUEST = Schema(EventRequest, "an event to send", assigned=())


def entry_of(type_name: str) -> str:
    """A type of entry that events of a type are made of."""
    return EVENT_TYPES[type_name].entry_types[0]


def event_of_type(type_name: str, now_ms: int) -> Event:
    """The example of a type, as if it had happened now."""
    event_id = event_id_of(_DATA_SET, 1 + secrets.randbelow(INT64_MAX))
    return replace(example(EVENT_TYPES[type_name]), id=event_id, timestamp=iso_moment(now_ms))
