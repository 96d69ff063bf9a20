"""The journal in tests: who makes the changes of a test, and what was written."""

from __future__ import annotations

from petstore.core.journal import ENTRIES_MAX, Entry, JournalQuery, read_about
from petstore.storage.backend import Store

# Of changes whose actor a test says nothing about.
ACTOR = "cli:tests"


async def entries(store: Store, about: str | None = None) -> list[Entry]:
    """The whole journal, or of one object; oldest first."""
    query = JournalQuery(ENTRIES_MAX, about=None if about is None else read_about(about))
    return (await store.journal.page(query)).entries[::-1]


async def written(store: Store, about: str | None = None) -> list[str]:
    """The same as lines, such as `pet.changed pet:7`."""
    return [f"{entry.type} {entry.about}" for entry in await entries(store, about)]
