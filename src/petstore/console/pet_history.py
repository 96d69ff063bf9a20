"""What has happened to an animal: the newest entries of the journal about it."""

from __future__ import annotations

import msgspec

from petstore.console.category_names import CategoryNames
from petstore.console.history import Line, lines
from petstore.core.journal import About, JournalQuery, JournalRepository

_ENTRIES = 20


class History(msgspec.Struct, frozen=True):
    """Newest first. `older` is the page of the journal with the rest; nothing without one."""

    lines: list[Line]
    older: str = ""
    is_removed: bool = False

    @property
    def newest_id(self) -> int:
        """The newest entry; 0 for none."""
        return self.lines[0].id if self.lines else 0


async def history_of(
    journal: JournalRepository, pet_id: int, names: CategoryNames, *, since_id: int = 0
) -> History:
    """The newest entries; of those only what came after the entry `since_id`."""
    page = await journal.page(JournalQuery(_ENTRIES, About("pet", str(pet_id))))
    entries = [entry for entry in page.entries if entry.id > since_id]
    is_cut = page.has_more and len(entries) == len(page.entries)
    return History(
        lines(entries, {"categoryId": names.label}),
        f"journal?about=pet:{pet_id}&before={entries[-1].id}" if is_cut else "",
        bool(entries) and entries[0].action == "removed",
    )
