"""All writes: one thread, one connection, a bounded queue, committed in groups.

The jobs in the queue, at most 256, become one transaction, with a savepoint for each. Their waiters are
answered after the commit has reached the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import apsw
import msgspec

from petstore.core.clock import Clock
from petstore.core.errors import StoreUnavailable
from petstore.storage.failures import NOTHING_STORED, OUTCOME_UNKNOWN, failure
from petstore.storage.observer import Committed
from petstore.storage.sqlite.connection import translate

_GROUP_MAX = 256
_MOVED = "its file or log was removed or replaced while the service ran: put it back, or restart the service"
_T = TypeVar("_T")

Job = Callable[[apsw.Connection], Any]


class _Ticket(msgspec.Struct, eq=False):
    """A job in the queue, and the future of its caller."""

    job: Job
    future: asyncio.Future[Any]
    ends_access: bool
    result: Any = None
    error: Exception | None = None


class Writer:
    """Owns the writing connection from the first `submit` until `close`.

    `make_room` frees the reserved disk space when a full disk stops a job that `ends_access`.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        clock: Clock,
        capacity: int,
        committed: Committed,
        make_room: Callable[[], bool] = lambda: False,
    ) -> None:
        self._connection = connection
        self._make_room = make_room
        self._clock = clock
        self._capacity = capacity
        self._committed = committed
        self.waiting = 0  # writes that are accepted and not answered yet
        self._closed = False
        self._identities: list[tuple[int, int] | None] = []
        self._queue: SimpleQueue[_Ticket | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[None]  # there from the first job on
        self.on_commit: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._run, name="petstore-writer", daemon=True)

    async def submit(self, job: Callable[[apsw.Connection], _T]) -> _T:
        """Carry out `job` inside a transaction; its result is durable when this returns.

        Raises the job's errors, after which nothing of it is stored, and StoreUnavailable.
        """
        # Shielded: a cancelled request must not cancel the future that its write will set.
        return await asyncio.shield(self.start(job))

    def start(self, job: Callable[[apsw.Connection], _T], *, ends_access: bool = False) -> asyncio.Future[_T]:
        """Begin a job. Await the future through a shield. Raises StoreUnavailable."""
        if self._closed:
            raise StoreUnavailable("The service is shutting down; nothing was stored.")
        if self.waiting >= self._capacity:
            raise StoreUnavailable("Too many writes are waiting; nothing was stored, try again shortly.")
        loop = asyncio.get_running_loop()
        if self._loop is None:
            try:
                self._thread.start()
            except RuntimeError as error:  # the next job tries again
                raise failure("the system allows no further thread", NOTHING_STORED) from error
            self._loop, self._ended = loop, loop.create_future()
        future: asyncio.Future[_T] = loop.create_future()
        self.waiting += 1
        self._queue.put(_Ticket(job, future, ends_access))
        return future

    async def drain(self) -> None:
        """Refuse new jobs, finish the accepted ones and end the thread."""
        self._closed = True
        if self._loop is not None:
            self._queue.put(None)
            await asyncio.shield(self._ended)
            self._thread.join()

    def close(self) -> None:
        """Close the connection: after `drain`, and as the last of the process."""
        self._connection.close()

    def _run(self) -> None:
        while (ticket := self._queue.get()) is not None:
            group = [ticket]
            while len(group) < _GROUP_MAX:
                try:
                    another = self._queue.get_nowait()
                except Empty:
                    break
                if another is None:
                    self._queue.put(None)
                    break
                group.append(another)
            self._carry_out(group)
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._answer, group)
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._ended.set_result, None)

    def _carry_out(self, group: list[_Ticket], make_room: Callable[[], bool] | None = None) -> None:
        """One transaction for the whole group; on failure every ticket carries the error."""
        began = self._clock.monotonic()
        connection = self._connection
        committing = False
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._refuse_other_files()
            if make_room is not None:
                make_room()  # inside the write lock, so that no other process takes the space
            for ticket in group:
                self._perform(ticket)
            committing = True
            connection.execute("COMMIT")
        except Exception as error:
            undone = self._roll_back()
            # SQLite finds a full disk before it writes the commit frame, so nothing can appear later. After
            # another failure of a commit, such as that of a sync, recovery after a crash may find the frame.
            full = isinstance(error, apsw.FullError)
            certain = undone and (not committing or full)
            if full and certain and make_room is None and any(ticket.ends_access for ticket in group):
                self._carry_out(group, self._make_room)
                return
            failure = translate(error, NOTHING_STORED if certain else OUTCOME_UNKNOWN)
            if failure is not error:
                failure.__cause__ = error
            for ticket in group:
                ticket.error = ticket.error or failure
            return
        self._committed(len(group), self._clock.monotonic() - began)

    def _refuse_other_files(self) -> None:
        """Raise StoreUnavailable where the database's names are no longer those of the open files: what is
        written into them is gone at the end. The first transaction takes the names as they are.
        """
        found = [_identity(f"{self._connection.filename}{suffix}") for suffix in ("", "-wal")]
        self._identities = self._identities or found
        if found != self._identities:
            raise failure(_MOVED, NOTHING_STORED)

    def _perform(self, ticket: _Ticket) -> None:
        connection = self._connection
        connection.execute("SAVEPOINT job")
        ticket.error = None
        try:
            ticket.result = ticket.job(connection)
        except Exception as error:
            if not connection.in_transaction:  # SQLite rolled back all of it: disk full, I/O error
                raise
            connection.execute("ROLLBACK TO job")
            ticket.error = translate(error, NOTHING_STORED)
        connection.execute("RELEASE job")

    def _roll_back(self) -> bool:
        """Roll back; True when nothing of the transaction is left."""
        if self._connection.in_transaction:  # otherwise SQLite has rolled back
            with contextlib.suppress(apsw.Error):
                self._connection.execute("ROLLBACK")
        return not self._connection.in_transaction

    def _answer(self, group: list[_Ticket]) -> None:
        """Runs on the event loop."""
        self.waiting -= len(group)
        self.on_commit()
        for ticket in group:
            if ticket.future.done():
                continue
            if ticket.error is not None:
                ticket.future.set_exception(ticket.error)
            else:
                ticket.future.set_result(ticket.result)


def _identity(file: str) -> tuple[int, int] | None:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
