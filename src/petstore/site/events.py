"""What the page of events shows: the types of core/events.py by their subjects, each with an example."""

from __future__ import annotations

import json
from itertools import groupby

import msgspec

from petstore.core.event_examples import example
from petstore.core.events import TYPES, EventType
from petstore.site.documents import Heading


class DocumentedEvent(msgspec.Struct, frozen=True):
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
    kinds: list[DocumentedEvent]


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


def _kind(kind: EventType) -> DocumentedEvent:
    text = json.dumps(msgspec.to_builtins(example(kind)), indent=2, ensure_ascii=False)
    return DocumentedEvent(kind.name, kind.summary, kind.shape.value, text)
