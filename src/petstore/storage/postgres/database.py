"""Statements and transactions on pooled connections: bounded in time, repeated where that is safe.

Writes are announced to the publisher before they may commit, and settled once their outcome is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

from petstore.core.clock import Clock
from petstore.core.errors import StoreUnavailable
from petstore.core.versions import WRITER_SECONDS, Publisher
from petstore.storage.failures import NOTHING_STORED, OUTCOME_UNKNOWN
from petstore.storage.observer import Committed
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres.coalescing import retrieve_error
from petstore.storage.postgres.connection import connect
from petstore.storage.postgres.faults import Repeatable, is_lost, is_the_drivers, may_repeat, translate
from petstore.storage.postgres.pool import Connection, Pool, close_connection
from petstore.storage.postgres.transaction import Transaction, Work, commit, run_locking, run_script
from petstore.transactions import script as scripts
from petstore.transactions.script import NO_EFFECT, Effect, Script

# Together less than a second.
_RETRY_DELAYS_SECONDS = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32)
# No repetition begins later: refusals may be slow, such as PgBouncer's, or deadlocks, each after a second.
_REPEATED_SECONDS = 2.0
# A write of unknown outcome may commit late, so its announcement is kept up for this long.
_UNKNOWN_SECONDS = 10.0
# Each statement has its own timeout; the transaction as a whole must end before its announcement.
_WRITE_SECONDS = WRITER_SECONDS - 1
_Arguments = TypeVarTuple("_Arguments")
_T = TypeVar("_T")


class Database(scripts.Database):
    """Runs scripts and single statements on the connections of a pool."""

    def __init__(
        self, url: str, clock: Clock, options: PostgresOptions, publisher: Publisher, committed: Committed
    ) -> None:
        self._clock = clock
        self._publisher = publisher
        self._committed = committed
        self._connect_unbounded = partial(connect, url, options, bounded=False)
        seconds = options.timeout_ms / 1_000
        self.pool = Pool(
            lambda: connect(url, options), clock, options.connections, seconds, options.max_waiters
        )
        self.on_commit: Callable[[], None] = lambda: None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing = asyncio.Event()

    def fetch(self, sql: str, *arguments: object) -> Coroutine[Any, Any, list[Any]]:
        """The rows of a query. Raises StoreUnavailable."""
        return self._repeat(self._fetch, sql, arguments)

    async def fetch_row(self, sql: str, *arguments: object) -> Any:
        """The first row of a query, or None."""
        rows = await self.fetch(sql, *arguments)
        return rows[0] if rows else None

    async def read(self, script: Script[_T]) -> _T:
        return await run_script(
            script, lambda statement, arguments: self.fetch(statement.postgres, *arguments)
        )

    def start(self, script: Callable[[], Script[_T]], effect: Effect = NO_EFFECT) -> asyncio.Task[_T]:
        return self.start_work(lambda connection: run_locking(connection, script()), effect)

    def start_work(
        self, work: Work[_T], effect: Effect = NO_EFFECT, *, autocommit: bool = False
    ) -> asyncio.Task[_T]:
        """Begin a write: `autocommit` when it is one statement, which is a transaction of its own."""
        if self._closing.is_set():
            raise StoreUnavailable("The service is shutting down; nothing was stored.")
        task = self._track(self._repeat(self._attempt, work, effect, autocommit))
        task.add_done_callback(retrieve_error)
        return task

    async def write_rows(self, sql: str, *arguments: object, effect: Effect = NO_EFFECT) -> list[Any]:
        """The rows that one statement returns, which is a transaction of its own."""
        writing: asyncio.Task[list[Any]] = self.start_work(
            lambda connection: connection.fetch(sql, *arguments), effect, autocommit=True
        )
        return await asyncio.shield(writing)

    async def write_long(self, script: Callable[[], Script[_T]], effect: Effect) -> _T:
        """Over a connection of its own, which has no timeouts; announced around its commit alone."""
        return await self._repeat(self._attempt_long, script, effect)

    async def close(self) -> None:
        """Finish the accepted writes, then close the connections."""
        self._closing.set()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self.pool.close()

    @contextlib.asynccontextmanager
    async def apart(self) -> AsyncIterator[Connection]:
        """A connection of its own, which has no timeouts; its end rolls back. Raises the driver's errors."""
        connection = await self._connect_unbounded()
        try:
            yield connection
        finally:
            await close_connection(connection)

    async def _acquire(self, outcome: str) -> Connection:
        try:
            return await self.pool.acquire()
        except Exception as error:  # not repeated: the next request tries again
            raise translate(error, outcome) from error

    async def _fetch(self, sql: str, arguments: tuple[object, ...]) -> list[Any]:
        connection = await self._acquire("")
        try:
            rows: list[Any] = await connection.fetch(sql, *arguments)
            return rows
        except BaseException as error:
            connection = self._keep_or_discard(connection, error)
            if not isinstance(error, Exception):
                raise
            raise translate(error, repeatable=may_repeat(error)) from error
        finally:
            self.pool.release(connection)

    def _keep_or_discard(self, connection: Connection, error: BaseException) -> Connection | None:
        """The connection, or None after an error that makes it unusable."""
        if isinstance(error, TimeoutError | asyncio.CancelledError):
            # The server may wait for a lock: the driver cancels the statement.
            self._track(close_connection(connection))
        elif not is_the_drivers(error) or not (is_lost(error) or connection.is_closed()):
            return connection
        else:
            connection.terminate()
        if isinstance(error, Exception):
            self.pool.expire_idle()
        return None

    def _track(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Begin what `close` waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _attempt(self, work: Work[_T], effect: Effect, autocommit: bool) -> _T:
        connection = await self._acquire(NOTHING_STORED)
        transaction = Transaction(connection, autocommit)
        announced: AbstractAsyncContextManager[None] | None = None
        try:
            if effect.catalogue or effect.keyring:
                change = self.announcement(effect)
                await change.__aenter__()
                announced = change
            began = self._clock.monotonic()
            carrying_out = transaction.carry_out(work)
            result = await (carrying_out if autocommit else _in_time(carrying_out))
            self.on_commit()
            self._committed(1, self._clock.monotonic() - began)
            return result
        except BaseException as error:
            connection = self._keep_or_discard(connection, error)
            if not isinstance(error, Exception):
                raise
            outcome = OUTCOME_UNKNOWN if transaction.unknown else NOTHING_STORED
            raise translate(error, outcome, repeatable=may_repeat(error)) from error
        finally:
            self.pool.release(connection)
            if announced is not None and transaction.unknown:
                again = self.announcement(effect)
                self._track(self._settle_late(announced, again))
            elif announced is not None:
                await announced.__aexit__(None, None, None)

    async def _attempt_long(self, script: Callable[[], Script[_T]], effect: Effect) -> _T:
        try:
            async with self.apart() as connection:
                await connection.execute("BEGIN")
                result = await run_locking(connection, script())
                await commit(connection, lambda: self.announcement(effect))
                return result
        except Exception as error:
            raise translate(error, NOTHING_STORED, repeatable=may_repeat(error)) from error

    async def _repeat(
        self, attempt: Callable[[*_Arguments], Coroutine[Any, Any, _T]], *arguments: *_Arguments
    ) -> _T:
        """Try up to eight times, at quick refusals within a second."""
        ends_seconds = self._clock.monotonic() + _REPEATED_SECONDS
        for delay in _RETRY_DELAYS_SECONDS:
            try:
                return await attempt(*arguments)
            except Repeatable:
                if self._clock.monotonic() > ends_seconds:
                    raise
                await asyncio.sleep(delay * random.uniform(0.5, 1))
        return await attempt(*arguments)

    def announcement(self, effect: Effect) -> AbstractAsyncContextManager[None]:
        """What a write with this effect commits within; see Publisher."""
        return self._publisher.changing(catalogue=effect.catalogue, keyring=effect.keyring)

    async def _settle_late(
        self, announced: AbstractAsyncContextManager[None], again: AbstractAsyncContextManager[None]
    ) -> None:
        """Renew the announcement before the first one ends, since that one began with the write."""
        async with again:
            await announced.__aexit__(None, None, None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_UNKNOWN_SECONDS):
                    await self._closing.wait()


async def _in_time(transaction: Coroutine[Any, Any, _T]) -> _T:
    async with asyncio.timeout(_WRITE_SECONDS):
        return await transaction
