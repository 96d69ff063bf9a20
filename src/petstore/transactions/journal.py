"""The journal, for both databases: one entry for each change, in the change's transaction."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from petstore.core.journal import Entry, animals_of_list
from petstore.transactions.journal_pages import page_of_journal
from petstore.transactions.rows import ENTRY, read_entry, select
from petstore.transactions.script import Repository, Script, Statement, read, reads, statement

_RECORD = f"INSERT INTO journal ({select(ENTRY[1:])})"
RECORD = statement(f"{_RECORD} VALUES ($1, $2, $3, $4, $5, $6, $7)")
# The beginning for the animals of a list: the other columns follow, from the identifiers on.
RECORD_PETS = f"{_RECORD} SELECT CAST($1 AS bigint), CAST($2 AS text), 'pet'"

# In SQLite nobody else writes while a list is stored.
_BESIDE = Statement(
    "SELECT 1 WHERE false AND (?1, ?2) = (?3, ?4)",
    f"SELECT {select(ENTRY)} FROM journal WHERE id >= $1 AND id < $2 AND NOT (at_ms = $3 AND actor = $4)"
    " ORDER BY id DESC LIMIT 50",
)

# A struct stands for its members under their names in JSON.
Members = Mapping[str, object] | msgspec.Struct | None


def record(
    now_ms: int, actor: str, subject: str, subject_id: int, action: str, before: Members, after: Members
) -> Script[None]:
    """Add an entry; see core.journal.Entry."""
    yield RECORD, (now_ms, actor, subject, subject_id, action, encode(before), encode(after))


def record_changes(
    now_ms: int,
    actor: str,
    subject: str,
    subject_id: int,
    action: str,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> Script[None]:
    """Add an entry of the members that changed; none when nothing did."""
    old, new = _unlike(before, after), _unlike(after, before)
    if old or new:
        yield from record(now_ms, actor, subject, subject_id, action, old, new)


def _unlike(members: Mapping[str, object], others: Mapping[str, object]) -> dict[str, object]:
    """The members that others do not have so."""
    return {name: value for name, value in members.items() if others.get(name) != value}


def encode(members: Members) -> str | None:
    """Members as the JSON of both databases; its bytes are the same in each."""
    return None if members is None else msgspec.json.encode(members).decode()


class Journal(Repository):
    """The journal of a store."""

    page = reads(page_of_journal)

    @read
    def beside(self, finished: Entry) -> Script[list[Entry]]:
        """The newest 50 entries that others wrote while a list was stored, among those of its animals."""
        among = finished.id - animals_of_list(finished), finished.id, finished.at_ms, finished.actor
        return [read_entry(row) for row in (yield _BESIDE, among)]
