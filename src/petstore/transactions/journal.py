"""The journal, for both databases: one entry for each change, in the change's transaction."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from petstore.core.journal import Entry, JournalPage, JournalQuery, Position
from petstore.transactions.journal_pages import page
from petstore.transactions.rows import ENTRY, read_entry, select
from petstore.transactions.script import Repository, Script, Statement, read, statement

# SQLite has one writer, so its identifiers are in the order of the commits. PostgreSQL hands them out before:
# below the oldest transaction that runs, nothing is added any more.
_FOLLOWING = Statement(
    sqlite=f"SELECT {select(ENTRY)}, 0 FROM journal WHERE ?1 >= '0' AND id > ?2 ORDER BY id LIMIT ?3",
    postgres=f"SELECT {select(ENTRY)}, transaction::text FROM journal"
    " WHERE (transaction, id) > ($1::text::xid8, $2)"
    " AND transaction < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY journal.transaction, id LIMIT $3",
)
_FOREIGN = Statement(
    sqlite="SELECT 1 WHERE false",
    postgres="SELECT 1 FROM journal WHERE transaction >= pg_snapshot_xmax(pg_current_snapshot()) LIMIT 1",
)
_ADOPT = Statement(
    sqlite="SELECT 1 WHERE false",
    postgres="UPDATE journal SET transaction = '0' WHERE id <="
    " (SELECT max(id) FROM journal WHERE transaction >= pg_snapshot_xmax(pg_current_snapshot()))",
)
RECORD = statement(f"INSERT INTO journal ({select(ENTRY[1:])}) VALUES ($1, $2, $3, $4, $5, $6, $7)")

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

    @read
    def page(self, query: JournalQuery) -> Script[JournalPage]:
        """The entries that match, newest first. Raises AccountNotFound and PersonNotFound."""
        return page(query)

    async def following(self, position: Position, limit: int) -> tuple[list[Entry], Position]:
        """The entries after a position, at most `limit`, and the position to go on from.

        Reading on from each position yields each entry once: an entry waits for all transactions that began
        before its own. In PostgreSQL that is until they have ended.
        """
        if await self._database.read(_has_foreign()):
            await self._database.write(_adopt)
        return await self._database.read(_following(position, limit))


def _following(position: Position, limit: int) -> Script[tuple[list[Entry], Position]]:
    rows = yield _FOLLOWING, (str(position.transaction), position.id, limit)
    if rows:
        position = Position(int(rows[-1][-1]), rows[-1][0])
    return [read_entry(row[:-1]) for row in rows], position


def _has_foreign() -> Script[bool]:
    """Whether there are entries from a dump of another cluster, which seem to be still to come."""
    return bool((yield _FOREIGN, ()))


def _adopt() -> Script[None]:
    """Put the foreign entries, and all of their dump, before those of this cluster."""
    yield _ADOPT, ()
