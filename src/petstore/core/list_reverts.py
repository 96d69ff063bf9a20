"""Reverting an import: all of its animals become what they were before it, or none.

The journal's entry of an import's end stands for it. Later entries have the outcome of the revert.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from petstore.core.errors import Conflict
from petstore.core.journal import Entry

ASKED = "list_taking_back_asked"
DONE = "list_taken_back"
REFUSED = "list_not_taken_back"
NAMED_MAX = 5
NOT_WHOLE = "The journal does not have all entries of this list any more, so it can't be taken back."


class ListRevert(msgspec.Struct, frozen=True):
    """The revert of an import, which ended with the entry `finished`. `last` is the revert's newest entry;
    None before somebody asks. `has_job`: the background process works on it, or will."""

    finished: Entry
    last: Entry | None
    has_job: bool

    @property
    def is_done(self) -> bool:
        return self.last is not None and self.last.action == DONE

    @property
    def is_running(self) -> bool:
        return self.has_job and not self.is_done

    def check_begin(self) -> None:
        """Raise Conflict when the import is reverted, or about to be."""
        if self.is_done:
            assert self.last is not None
            raise Conflict(f"This list was taken back already, by {self.last.actor.partition(':')[2]}.")
        if self.is_running:
            raise Conflict("This list is being taken back already.")


class ChangedSince(Conflict):
    """Animals of the list have newer entries in the journal. `animals` are the first NAMED_MAX of them."""

    def __init__(self, animals: Sequence[int]) -> None:
        self.animals = animals[:NAMED_MAX]
        named = ", ".join(map(str, self.animals)) + (" and others" if len(animals) > NAMED_MAX else "")
        super().__init__(
            f"Nothing was taken back: these of its animals were changed, ordered or removed since: {named}."
        )
