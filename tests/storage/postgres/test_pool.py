"""The pool of connections: bounded, and it trusts none that it has reason to doubt."""

from __future__ import annotations

import asyncio

import pytest
from asyncpg import InFailedSQLTransactionError

from petstore.core.errors import Conflict, StoreUnavailable
from petstore.storage.postgres.pool import Pool
from petstore.storage.postgres.transaction import Transaction
from tests.support.clock import ManualClock
from tests.support.waiting import until


class Connection:
    """A stand-in for a connection, which is open until it is closed, one way or the other."""

    def __init__(self) -> None:
        self.ended = ""
        self.refuses_goodbye = False
        self.answers: dict[str, str] = {}

    def is_closed(self) -> bool:
        return bool(self.ended)

    def terminate(self) -> None:
        self.ended = "terminated"

    async def execute(self, statement: str) -> str:
        if statement == "ROLLBACK":
            raise TimeoutError
        return self.answers.get(statement, statement)

    async def close(self, timeout: float) -> None:  # noqa: ASYNC109  the driver's own interface
        if self.refuses_goodbye:
            raise TimeoutError
        self.ended = "closed"


class Server:
    """Makes connections, or fails to."""

    def __init__(self) -> None:
        self.made: list[Connection] = []
        self.error: Exception | None = None

    async def connect(self) -> Connection:
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        self.made.append(Connection())
        return self.made[-1]


@pytest.fixture
def server() -> Server:
    return Server()


def open_pool(
    server: Server, clock: ManualClock, *, size: int = 2, seconds: float = 5, max_waiters: int = 9
) -> Pool:
    return Pool(server.connect, clock, size, seconds, max_waiters)


async def test_the_one_that_was_used_last_is_used_next(server: Server, clock: ManualClock) -> None:
    """The pool gives the connection that was used last, so that in quiet times the others rest and age."""
    pool = open_pool(server, clock)
    first, second = await pool.acquire(), await pool.acquire()
    pool.release(first)
    pool.release(second)
    assert await pool.acquire() is second
    assert await pool.acquire() is first


async def test_what_was_idle_for_long_is_made_anew(server: Server, clock: ManualClock) -> None:
    """Something on the way may have forgotten it: five minutes, by a clock that never steps back."""
    pool = open_pool(server, clock)
    old = await pool.acquire()
    pool.release(old)
    clock.advance(299)
    assert await pool.acquire() is old
    pool.release(old)
    clock.advance(300)
    assert await pool.acquire() is not old
    assert old.ended == "terminated"


async def test_a_closed_one_is_never_handed_out(server: Server, clock: ManualClock) -> None:
    """Whether it broke in use or while it was idle."""
    pool = open_pool(server, clock)
    first, second = await pool.acquire(), await pool.acquire()
    first.terminate()
    pool.release(first)
    pool.release(second)
    second.terminate()
    assert {await pool.acquire(), await pool.acquire()}.isdisjoint({first, second})


async def test_a_connection_that_cannot_be_made_leaves_its_place(server: Server, clock: ManualClock) -> None:
    """Twenty failures in a pool of two, and then it works."""
    pool = open_pool(server, clock)
    server.error = OSError("refused")
    for _ in range(20):
        with pytest.raises(OSError, match="refused"):
            await pool.acquire()
    server.error = None
    assert len({await pool.acquire(), await pool.acquire()}) == 2


async def test_whoever_goes_away_while_connecting_leaves_their_place(clock: ManualClock) -> None:
    """Requests that go away while connecting, one for each place, leave the places to those behind."""
    answers = asyncio.Event()

    async def connect() -> Connection:
        await answers.wait()
        return Connection()

    pool = Pool(connect, clock, 2, 5, 9)
    asking = [asyncio.create_task(pool.acquire()) for _ in range(3)]
    await asyncio.sleep(0)
    for task in asking[:2]:
        task.cancel()
    await asyncio.gather(*asking[:2], return_exceptions=True)
    answers.set()
    assert not (await asking[2]).is_closed()
    assert not (await pool.acquire()).is_closed()
    assert (pool.in_use, pool.waiting) == (2, 0)


async def test_who_waited_first_is_served_first(server: Server, clock: ManualClock) -> None:
    """Requests get connections in the order in which they came, past those that went away meanwhile."""
    pool = open_pool(server, clock, size=1)
    held = await pool.acquire()
    served: list[int] = []

    async def wait(number: int) -> None:
        connection = await pool.acquire()
        served.append(number)
        pool.release(connection)

    tasks = [asyncio.create_task(wait(number)) for number in range(5)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    pool.release(held)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert served == [0, 2, 3, 4]


async def test_a_turn_that_comes_with_the_cancellation_is_passed_on(
    server: Server, clock: ManualClock
) -> None:
    """The slot is not lost with who went away."""
    pool = open_pool(server, clock, size=1)
    held = await pool.acquire()
    first = asyncio.create_task(pool.acquire())
    second = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    pool.release(held)  # it is the first one's turn now, and it goes away in the same moment
    first.cancel()
    assert await second is held
    assert first.cancelled()


async def test_waiting_ends_in_time(server: Server, clock: ManualClock) -> None:
    """An error says so, without a trace: the next in line is served."""
    pool = open_pool(server, clock, size=1, seconds=0.02)
    held = await pool.acquire()
    waiting = asyncio.create_task(pool.acquire())
    await until(lambda: pool.waiting == 1)
    clock.advance(0.03)
    with pytest.raises(StoreUnavailable, match="no connection to it came free in time; nothing was stored"):
        await waiting
    pool.release(held)
    assert await pool.acquire() is held


async def test_each_waits_for_its_own_time(server: Server, clock: ManualClock) -> None:
    """Who came later waits longer, and so does who comes when nobody waits any more."""
    pool = open_pool(server, clock, size=1, seconds=0.02)
    held = await pool.acquire()
    for _ in range(2):
        first = asyncio.create_task(pool.acquire())
        await until(lambda: pool.waiting == 1)
        clock.advance(0.01)
        second = asyncio.create_task(pool.acquire())
        await until(lambda: pool.waiting == 2)
        for left, waiting in ((1, first), (0, second)):
            clock.advance(0.011)
            with pytest.raises(StoreUnavailable):
                await waiting
            assert pool.waiting == left
    pool.release(held)
    assert await pool.acquire() is held


async def test_a_crowd_is_told_at_once(server: Server, clock: ManualClock) -> None:
    """Nobody waits behind more than the bound."""
    pool = open_pool(server, clock, size=1, max_waiters=1)
    held = await pool.acquire()
    waiting = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable, match="Too many requests wait"):
        await pool.acquire()
    pool.release(held)
    assert await waiting is held


async def test_expiry_closes_what_is_idle_and_nothing_in_use(server: Server, clock: ManualClock) -> None:
    """What is in use shows by itself what it is worth."""
    pool = open_pool(server, clock)
    used, idle = await pool.acquire(), await pool.acquire()
    pool.release(idle)
    pool.expire_idle()
    assert (used.ended, idle.ended) == ("", "terminated")


async def test_a_closed_pool_hands_out_nothing_and_ends_its_connections(
    server: Server, clock: ManualClock
) -> None:
    """Idle ones say goodbye, or go without; one in use goes when it comes back; nothing is handed out."""
    pool = open_pool(server, clock, size=3)
    used, idle, stubborn = [await pool.acquire() for _ in range(3)]
    stubborn.refuses_goodbye = True
    pool.release(idle)
    pool.release(stubborn)
    await pool.close()
    with pytest.raises(StoreUnavailable, match="shutting down"):
        await pool.acquire()
    pool.release(used)
    assert [each.ended for each in (used, idle, stubborn)] == ["terminated", "closed", "terminated"]
    await until(lambda: len(server.made) == 3)


async def test_what_is_under_way(server: Server, clock: ManualClock) -> None:
    """Metrics see what is in use and who waits; a connection that broke is neither."""
    pool = open_pool(server, clock)
    first, second = await pool.acquire(), await pool.acquire()
    waiting = asyncio.create_task(pool.acquire())
    await until(lambda: pool.waiting == 1)
    assert pool.in_use == 2
    pool.release(first)
    third = await waiting
    assert (pool.in_use, pool.waiting) == (2, 0)
    pool.release(third)
    second.terminate()
    pool.release(second)
    assert pool.in_use == 0


async def test_a_transaction_that_can_not_be_rolled_back_ends_with_its_connection() -> None:
    """The next request on it would write into that transaction, and commit it."""
    connection = Connection()

    async def refuse(_: object) -> None:
        raise Conflict("no")

    with pytest.raises(Conflict):
        await Transaction(connection, autocommit=False).carry_out(refuse)
    assert connection.is_closed()


async def test_a_commit_that_rolled_back_is_no_success() -> None:
    """PostgreSQL answers so to the COMMIT of a transaction that had failed before; nothing was stored."""
    connection = Connection()
    connection.answers["COMMIT"] = "ROLLBACK"

    async def store(_: object) -> None:
        return

    with pytest.raises(InFailedSQLTransactionError):
        await Transaction(connection, autocommit=False).carry_out(store)
