"""The index for searches, in tables of its own: GIN finds rare grams, the nearest rows frequent ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from petstore.core.search import IndexProgress, IndexTexts, SearchKind, grams_of, key_of
from petstore.storage.postgres.database import Database
from petstore.transactions.rows import PROGRESS, placeholders, progress_values, read_progress, select
from petstore.transactions.script import Script, Statement

_READ = f"SELECT {select(PROGRESS)} FROM search_progress"
# Processes take turns.
_LOCK = Statement("", "LOCK TABLE search_progress IN EXCLUSIVE MODE")
_WRITE = Statement(
    "", f"INSERT INTO search_progress ({select(PROGRESS)}) VALUES ({placeholders(len(PROGRESS))})"
)
_FORGET = Statement("", "DELETE FROM search_progress")
_REMOVED = 50_000  # rows in a transaction, so that it is far from the timeout of a statement
# Rows that are looked at for each that is wanted: 2,000 take some 2 ms.
_NEAR = 20


class PostgresSearch:
    """Implements core.search.SearchIndex."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def progress(self) -> IndexProgress | None:
        return read_progress(await self._database.fetch_row(_READ))

    async def put(self, texts: IndexTexts, before: IndexProgress | None, after: IndexProgress) -> None:
        for kind in SearchKind if after.is_begin else ():
            while await self._database.write(partial(_remove_some, kind, before)):
                pass
        await self._database.write(lambda: _put(texts, before, after))

    async def find(
        self, kind: SearchKind, keys: Sequence[int], beyond: int, *, newest_first: bool, limit: int
    ) -> list[int]:
        sign, order = ("<", "DESC") if newest_first else (">", "ASC")
        table, by_id = f"search_{kind}", f"id {sign} $2 ORDER BY id {order}"
        near = f"SELECT id, grams FROM {table} WHERE {by_id} LIMIT {_NEAR * limit}"
        arguments = keys, beyond, limit
        rows = await self._database.fetch(
            f"SELECT id FROM ({near}) AS near WHERE grams @> $1 ORDER BY id {order} LIMIT $3", *arguments
        )
        if len(rows) < limit:
            # The planner would walk by the id for a LIMIT, past millions of rows.
            rows = await self._database.fetch(
                f"WITH found AS MATERIALIZED (SELECT id FROM {table} WHERE grams @> $1)"
                f" SELECT id FROM found WHERE {by_id} LIMIT $3",
                *arguments,
            )
        return [row[0] for row in rows]


def _lock(before: IndexProgress | None) -> Script[bool]:
    """Lock the index; whether no other process has gone on with it since."""
    yield _LOCK, ()
    found = yield Statement("", _READ), ()
    return read_progress(found[0] if found else None) == before


def _remove_some(kind: SearchKind, before: IndexProgress | None) -> Script[bool]:
    """Remove rows of an index that is to be begun. False when none is left, or another process has begun."""
    if not (yield from _lock(before)):
        return False
    some = f"ctid = ANY(ARRAY(SELECT ctid FROM search_{kind} LIMIT {_REMOVED}))"
    remove = f"WITH gone AS (DELETE FROM search_{kind} WHERE {some} RETURNING 1) SELECT 1 FROM gone LIMIT 1"
    return bool((yield Statement("", remove), ()))


def _put(texts: IndexTexts, before: IndexProgress | None, after: IndexProgress) -> Script[None]:
    if not (yield from _lock(before)):
        return
    if after.is_begin:
        for kind in SearchKind:
            yield Statement("", f"DELETE FROM search_{kind}"), ()
    for kind, rows in texts.items():
        yield REMOVE[kind], (list(rows),)
        put = [(id_, text) for id_, text in rows.items() if text]
        yield _INSERT[kind], ([id_ for id_, _ in put], [_array(text) for _, text in put])
    yield _FORGET, ()
    yield _WRITE, progress_values(after)


# Planned while the index is empty, `= ANY` would compare each of its rows with each of these.
REMOVE = {
    kind: Statement(
        "", f"DELETE FROM search_{kind} USING unnest($1::bigint[]) AS texts (text_id) WHERE id = text_id"
    )
    for kind in SearchKind
}
_INSERT = {
    kind: Statement(
        "",
        f"INSERT INTO search_{kind} (id, grams)"
        " SELECT id, grams::integer[] FROM unnest($1::bigint[], $2::text[]) AS texts (id, grams)",
    )
    for kind in SearchKind
}


def _array(text: str) -> str:
    """PostgreSQL's text of an array: its arrays of arrays have one length."""
    return f"{{{','.join(str(key_of(gram)) for gram in grams_of(text))}}}"
