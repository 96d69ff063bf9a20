"""Moves a store from a SQLite file to a PostgreSQL database: every row, with its identifier, verified."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec

from petstore.core.errors import StoreUnavailable
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres import copying as postgres
from petstore.storage.rows import TABLES, Table
from petstore.storage.sqlite import copying as sqlite

_PROGRESS_EVERY = 1_000
_NAMES = [table.name for table in TABLES]


class CopiedTable(msgspec.Struct, frozen=True):
    """A verified table: its rows were read back and equal those of the source."""

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


def count_rows(source: sqlite.Source) -> int:
    """How many rows there are to copy."""
    return sum(source.count(table.name) for table in TABLES)


async def copy(
    source: sqlite.Source, url: str, options: PostgresOptions, progress: Callable[[int], None]
) -> list[CopiedTable]:
    """Copy everything and read it back, in one transaction of the target.

    `progress` is told of rows as they are done: each counts twice, written and read back. Raises
    OperatorError when the target is not empty, StoreUnavailable when it fails or holds something else than
    was sent.
    """
    async with postgres.opened(url, options) as target:
        await target.refuse_unless_empty(_NAMES)
        copied = [await _copy_table(source, target, table, progress) for table in TABLES]
        await target.analyze(_NAMES)
        # Last, since a rollback does not take back what moves a sequence.
        for table in TABLES:
            if table.has_identity:
                await target.go_on_after(table.name, source.last_identifier(table.name))
    return copied


async def _copy_table(
    source: sqlite.Source, target: postgres.Target, table: Table, progress: Callable[[int], None]
) -> CopiedTable:
    columns = ", ".join(table.columns)
    sent = _Checksum(progress)
    rows: Iterator[tuple[Any, ...]] = map(sent.add, source.rows(table.name, columns, table.order))
    await target.write(table.name, table.columns, rows)
    arrived = _Checksum(progress)
    stored: AsyncIterator[tuple[Any, ...]] = target.rows(table.name, columns, table.order)
    async for row in stored:
        arrived.add(row)
    if (result := arrived.result()) != sent.result():
        raise StoreUnavailable(f"The rows of {table.name} differ after the copy; nothing was kept.")
    return CopiedTable(table.name, *result)
