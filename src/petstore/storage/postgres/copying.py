"""A database on a server as the target of a copy, all of it in one transaction."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from petstore.core.errors import OperatorError
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres.connection import connect
from petstore.storage.postgres.faults import is_the_drivers, translate
from petstore.storage.postgres.pool import Connection
from petstore.storage.postgres.schema import prepare

_ROWS_AT_A_TIME = 5_000


class Target:
    """The database that a copy fills; open within `opened`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def refuse_unless_empty(self, tables: Sequence[str]) -> None:
        """Lock the tables. Raises OperatorError when one has rows."""
        await self._connection.execute(f"LOCK TABLE {', '.join(tables)} IN EXCLUSIVE MODE")
        for table in tables:
            if await self._connection.fetchval(f"SELECT EXISTS (SELECT 1 FROM {table})"):
                raise OperatorError(
                    f"The target is not empty: there are rows in {table}. Copy into a database of its own."
                )

    async def write(self, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Add all rows with their own identifiers, by COPY."""
        await self._connection.copy_records_to_table(table, records=rows, columns=columns)

    async def rows(self, table: str, columns: str, order: str) -> AsyncIterator[tuple[Any, ...]]:
        """Every row as it was stored, in the order of the primary key."""
        query = f"SELECT {columns} FROM {table} ORDER BY {order}"
        async for row in self._connection.cursor(query, prefetch=_ROWS_AT_A_TIME):
            yield tuple(row)

    async def finish(self, last: Mapping[str, int], is_whole: bool, stage: str | None) -> None:
        """Go on after the `last` identifiers of tables, where 0 means that none was assigned. Save the data's
        stage, and whether its journal begins with the first animal: else nobody may follow it from there.
        """
        for table, identifier in last.items():
            if identifier:
                await self._connection.fetchval(
                    "SELECT setval(pg_get_serial_sequence($1, 'id'), $2)", table, identifier
                )
        await self._connection.execute("UPDATE data_set SET is_whole = $1, stage = $2", is_whole, stage)

    async def analyze(self, tables: Sequence[str]) -> None:
        """Update the planner's statistics, which were made from empty tables."""
        for table in tables:
            await self._connection.execute(f"ANALYZE {table}")


@contextlib.asynccontextmanager
async def opened(url: str, options: PostgresOptions) -> AsyncIterator[Target]:
    """The target, with a schema; the transaction commits when the block ends without an error.

    Raises StoreUnavailable and ConfigurationError.
    """
    prepare(url, options)
    try:
        connection = await connect(url, options, bounded=False)
        try:
            async with connection.transaction():
                yield Target(connection)
        finally:
            await connection.close(timeout=5)
    except Exception as error:
        if is_the_drivers(error):
            raise translate(error, "; nothing was copied") from error
        raise
