"""One attempt at a write: one statement or a transaction, and whether its outcome is known."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

import asyncpg

from petstore.core.versions import WRITER_SECONDS
from petstore.storage.failures import NOTHING_STORED, OUTCOME_UNKNOWN
from petstore.storage.postgres.faults import is_answer, is_the_drivers, translate
from petstore.storage.postgres.pool import Connection
from petstore.transactions.script import Script, Statement

_T = TypeVar("_T")
Work = Callable[[Connection], Awaitable[_T]]
Announce = Callable[[], AbstractAsyncContextManager[None]]
# What may take longer than a writer stays announced is announced just before its commit, until which nobody
# else can read any of it: what is left is the sync of the server's log.
_COMMIT_SECONDS = WRITER_SECONDS - 1


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


async def commit(connection: Connection, announce: Announce) -> None:
    """Commit, announced; also when this is cancelled, since the answer tells the outcome."""
    ending = asyncio.ensure_future(_commit(connection, announce))
    try:
        await asyncio.shield(ending)
    except asyncio.CancelledError:
        await ending


async def _commit(connection: Connection, announce: Announce) -> None:
    async with announce():
        try:
            async with asyncio.timeout(_COMMIT_SECONDS):
                await connection.execute("COMMIT")
        except Exception as error:
            if is_answer(error) or not is_the_drivers(error):
                raise translate(error, NOTHING_STORED) from error
            # It may commit late: announced anew, no cached page is used until it must have ended.
            async with announce():
                await asyncio.sleep(_COMMIT_SECONDS)
            raise translate(error, OUTCOME_UNKNOWN) from error


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
