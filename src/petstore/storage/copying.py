"""Moves a store from a SQLite file to a PostgreSQL database: every row, with its identifier, verified."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import msgspec

from petstore.core.arguments import WrongArgument, database_url, naming
from petstore.core.errors import StoreUnavailable
from petstore.storage.backend import is_server, sqlite_path
from petstore.storage.options import PostgresOptions, SqliteOptions
from petstore.storage.sqlite.copying import Source, opened
from petstore.transactions.rows import TABLES, Table

if TYPE_CHECKING:
    from petstore.storage.postgres.copying import Target

_PROGRESS_EVERY = 1_000
_NAMES = [table.name for table in TABLES]


class CopiedTable(msgspec.Struct, frozen=True):
    """A verified table: its rows were read back and equal the source's."""

    name: str
    rows: int
    sha256: str


class _Checksum:
    """A checksum over rows in order, equal for equal rows of either database."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self._hash = hashlib.sha256()
        self._encode = msgspec.msgpack.Encoder().encode
        self._progress = progress
        self.rows = 0

    def add(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        self._hash.update(self._encode(row))
        self.rows += 1
        if self.rows % _PROGRESS_EVERY == 0:
            self._progress(_PROGRESS_EVERY)
        return row

    def result(self) -> tuple[int, str]:
        self._progress(self.rows % _PROGRESS_EVERY)
        return self.rows, self._hash.hexdigest()


def copy_database(
    source: str,
    target: str,
    sqlite: SqliteOptions,
    postgres: PostgresOptions,
    expect: Callable[[int], None],
    progress: Callable[[int], None],
) -> list[CopiedTable]:
    """Copy the store in a SQLite file to an empty PostgreSQL database, in one transaction, and read it back.

    `expect` is called once with the number of rows to write and read back, so twice the file's;
    `progress` with each number that is done. Raises WrongArgument for any other pair of databases,
    OperatorError while a server uses the source and when the target is not empty, StoreUnavailable when it
    fails or holds something else than was sent. Errors name the arguments of `db copy`.
    """
    if is_server(source) or not is_server(target):
        raise WrongArgument(
            "A store is copied from a SQLite file to PostgreSQL:"
            " petstore db copy sqlite:///petstore.db postgresql://USER@HOST/DATABASE."
        )
    with naming("TO"):
        from petstore.storage.postgres.copying import opened as opened_target  # its driver may be missing

    with naming("FROM"), opened(sqlite_path(database_url(source)), sqlite.busy_timeout_ms) as file:
        expect(2 * sum(file.count(name) for name in _NAMES))
        with naming("TO"):
            return asyncio.run(_copy(file, opened_target(target, postgres), progress))


async def _copy(
    source: Source, opening: AbstractAsyncContextManager[Target], progress: Callable[[int], None]
) -> list[CopiedTable]:
    async with opening as target:
        await target.refuse_unless_empty(_NAMES)
        copied = [await _copy_table(source, target, table, progress) for table in TABLES]
        await target.analyze(_NAMES)
        # Last, since a rollback does not move a sequence back.
        last = {table.name: source.last_identifier(table.name) for table in TABLES if table.has_identity}
        await target.finish(last, *source.data_set())
    return copied


async def _copy_table(
    source: Source, target: Target, table: Table, progress: Callable[[int], None]
) -> CopiedTable:
    columns = ", ".join(table.columns)
    sent = _Checksum(progress)
    rows = source.rows(table.name, columns, table.order)
    await target.write(table.name, table.columns, map(sent.add, rows))
    arrived = _Checksum(progress)
    async for row in target.rows(table.name, columns, table.order):
        arrived.add(row)
    if (result := arrived.result()) != sent.result():
        raise StoreUnavailable(f"The rows of {table.name} differ after the copy; nothing was kept.")
    return CopiedTable(table.name, *result)
