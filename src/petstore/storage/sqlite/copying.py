"""The file as the source of a copy: the rows of one snapshot, while no server uses it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from petstore.core.errors import ConfigurationError, OperatorError
from petstore.storage.sqlite import upkeep
from petstore.storage.sqlite.connection import closing_reader, open_reader, translated
from petstore.storage.sqlite.lock import lock_for_serving


class Source:
    """The file that is copied, read in one snapshot; open within `opened`."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        with translated():
            self._connection.execute("BEGIN; SELECT 1 FROM sqlite_schema").fetchall()

    def count(self, table: str) -> int:
        with translated():
            count: int = self._connection.execute(f"SELECT count(*) FROM {table}").get
        return count

    def rows(self, table: str, columns: str, order: str) -> Iterator[tuple[Any, ...]]:
        """Every row, in the order of the primary key."""
        with translated():
            yield from self._connection.execute(f"SELECT {columns} FROM {table} ORDER BY {order}")

    def data_set(self) -> tuple[bool, str | None]:
        """Whether the journal begins with the first animal, and the stage of the data."""
        with translated():
            is_whole, stage = self._connection.execute("SELECT is_whole, stage FROM data_set").get
        return bool(is_whole), stage

    def last_identifier(self, table: str) -> int:
        """The greatest identifier ever assigned, also when its row is gone."""
        with translated():
            found = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).get
            highest = self._connection.execute(f"SELECT max(id) FROM {table}").get
        return max(found or 0, highest or 0)


@contextlib.contextmanager
def opened(path: str, busy_timeout_ms: int) -> Iterator[Source]:
    """The source, locked against servers.

    Raises OperatorError when there is no database, a server uses it or it is damaged, ConfigurationError when
    its schema is not this program's.
    """
    if not Path(path).exists():
        raise OperatorError(f"There is no database {path}; nothing was copied.")
    with lock_for_serving(path):
        report = upkeep.check(path, busy_timeout_ms)
        if report.problems:
            raise OperatorError(f"{path} is damaged and was not copied: {report.problems[0]}.")
        if report.remark:  # an older schema lacks tables, a newer one has more than are copied
            raise ConfigurationError(f"{path} was not copied: {report.remark}.")
        with closing_reader(open_reader(path, busy_timeout_ms)) as reader:
            yield Source(reader)
