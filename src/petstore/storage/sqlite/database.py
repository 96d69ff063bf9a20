"""Runs scripts on the file: reads on the reading connection, writes in the writer's group of transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import apsw

from petstore.storage.sqlite.connection import translated
from petstore.storage.sqlite.writer import Writer
from petstore.transactions import script as scripts
from petstore.transactions.script import NO_EFFECT, Effect, Script

_T = TypeVar("_T")


def run(connection: apsw.Connection, script: Script[_T]) -> _T:
    """The script's result. Raises the script's errors and the driver's."""
    execute, send = connection.execute, script.send
    try:
        statement, arguments = next(script)
        while True:
            statement, arguments = send(execute(statement.sqlite, arguments).fetchall())
    except StopIteration as end:
        result: _T = end.value
        return result


class Database(scripts.Database):
    """Runs scripts on one file. SQLite's triggers move the versions."""

    def __init__(self, reader: apsw.Connection, writer: Writer) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self, script: Script[_T]) -> _T:
        with translated():
            return run(self._reader, script)

    def start(self, script: Callable[[], Script[_T]], effect: Effect = NO_EFFECT) -> asyncio.Future[_T]:
        return self._writer.start(
            lambda connection: run(connection, script()), ends_access=effect.ends_access
        )
