"""What has happened to an animal, from the journal, in the words of its page."""

from __future__ import annotations

from typing import Any

import msgspec

from petstore.console.category_names import CategoryNames
from petstore.core.journal import About, Entry, JournalQuery, JournalRepository

_ENTRIES = 20
_WORDS = {"name": "Name", "categoryId": "Category", "status": "Status"}


class Change(msgspec.Struct, frozen=True):
    """One member that changed; `before` is empty for a new animal, `after` for a removed one."""

    what: str
    before: str
    after: str


class Event(msgspec.Struct, frozen=True):
    """One entry of the journal. `action` is such as `added`, `at_ms` a Unix time."""

    at_ms: int
    actor: str
    action: str
    changes: list[Change]


class History(msgspec.Struct, frozen=True):
    """Newest first. `newest_id` is the first entry, 0 for none; `older` the one before which to go on."""

    events: list[Event]
    newest_id: int = 0
    older: int | None = None

    @property
    def is_removed(self) -> bool:
        """Whether the last thing that happened is the removal."""
        return bool(self.events) and self.events[0].action == "removed"


async def history_of(
    journal: JournalRepository,
    pet_id: int,
    names: CategoryNames,
    *,
    before_id: int | None = None,
    since_id: int = 0,
) -> History:
    """A page of the history: what came before one entry, or since another one."""
    query = JournalQuery(_ENTRIES, About("pet", str(pet_id)), before_id=before_id)
    page = await journal.page(query)
    entries = [entry for entry in page.entries if entry.id > since_id]
    if not entries:
        return History([])
    is_cut = page.has_more and len(entries) == len(page.entries)
    events = [_event(entry, names) for entry in entries]
    return History(events, entries[0].id, entries[-1].id if is_cut else None)


def _event(entry: Entry, names: CategoryNames) -> Event:
    before, after = entry.before or {}, entry.after or {}
    members = [*before, *(member for member in after if member not in before)]
    changes = [
        Change(_WORDS.get(member, member), _text(member, before, names), _text(member, after, names))
        for member in members
    ]
    return Event(entry.at_ms, entry.actor, entry.action, changes)


def _text(member: str, members: dict[str, Any], names: CategoryNames) -> str:
    if member not in members:
        return ""
    value = members[member]
    return names.label(value) if member == "categoryId" else str(value)
