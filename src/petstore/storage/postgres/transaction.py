"""One attempt at a write: one statement or a transaction, and whether its outcome is known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg

from petstore.storage.postgres.faults import is_answer, is_the_drivers
from petstore.storage.postgres.pool import Connection
from petstore.transactions.script import Script, Statement

_T = TypeVar("_T")
Work = Callable[[Connection], Awaitable[_T]]


async def run_script(
    script: Script[_T], fetch: Callable[[Statement, tuple[object, ...]], Awaitable[list[Any]]]
) -> _T:
    """Step a script to its end."""
    try:
        statement, arguments = next(script)
        while True:
            statement, arguments = script.send(await fetch(statement, arguments))
    except StopIteration as end:
        result: _T = end.value
        return result


def run_locking(connection: Connection, script: Script[_T]) -> Awaitable[_T]:
    """Step a script within a transaction: the rows that it asks to lock are held until the end."""
    return run_script(
        script, lambda statement, arguments: connection.fetch(statement.postgres + statement.lock, *arguments)
    )


class Transaction:
    """One attempt at a write, and whether its outcome is known."""

    def __init__(self, connection: Connection, autocommit: bool) -> None:
        self._connection = connection
        self._autocommit = autocommit
        self.unknown = False

    async def carry_out(self, work: Work[_T]) -> _T:
        connection = self._connection
        if connection.is_closed():  # it closed during the publisher's call; nothing was sent yet
            raise asyncpg.ConnectionDoesNotExistError("the connection was closed before its use")
        try:
            if self._autocommit:
                self.unknown = True
                result = await work(connection)
            else:
                await connection.execute("BEGIN")
                result = await work(connection)
                self.unknown = True
                # COMMIT answers ROLLBACK when the transaction had failed before.
                if await connection.execute("COMMIT") != "COMMIT":
                    raise asyncpg.InFailedSQLTransactionError("the transaction had failed before its end")
            self.unknown = False
            return result
        except Exception as error:
            known = is_answer(error) or not is_the_drivers(error)
            if known and not connection.is_closed():
                self.unknown = False
                await self._roll_back()
            raise

    async def _roll_back(self) -> None:
        if not self._autocommit:
            try:
                await self._connection.execute("ROLLBACK")
            except Exception:
                self._connection.terminate()  # which rolls back as well
