"""Scripts: transactions written once, as generators that yield statements and are sent their rows.

A script raises the core's errors, and composes by `yield from`. Each database has a driver that steps it:
sqlite/database.py and postgres/database.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec

from petstore.core.clock import Clock
from petstore.core.values import IDS_MAX
from petstore.transactions.rows import placeholders

P = ParamSpec("P")
R = TypeVar("R", bound="Repository")
_T = TypeVar("_T")
REMOVED_AT_A_TIME = 1_000


class Statement(msgspec.Struct, frozen=True):
    """One SQL statement in each dialect. `lock` follows it in PostgreSQL's transactions:
    ` FOR UPDATE` holds the rows until the end. SQLite needs none, since it has one writer.
    """

    sqlite: str
    postgres: str
    lock: str = ""


def statement(sql: str, *, lock: str = "") -> Statement:
    """A statement that both databases understand, its parameters written `$1`, `$2` and so on.

    No script sees a driver's error: a row that may be there already needs `ON CONFLICT`.
    """
    return Statement(sql.replace("$", "?"), sql, lock)


def padded(ids: tuple[int, ...]) -> tuple[int, ...]:
    """Identifiers for `IN`, repeated to one, ten or a hundred: each text is one more statement that a
    connection keeps prepared.
    """
    length = next((length for length in (1, 10, IDS_MAX) if len(ids) <= length), len(ids))
    return (ids * -(-length // max(len(ids), 1)))[:length]


def moment_ms(parameter: int) -> str:
    """SQL of PostgreSQL for a parameter or, if that is NULL, the server's time in milliseconds.

    The clocks of machines differ; with the server's all processes agree.
    """
    return f"coalesce(${parameter}::bigint, (extract(epoch FROM statement_timestamp()) * 1000)::bigint)"


def sqlite_moment_ms(parameter: int) -> str:
    """SQL of SQLite for a parameter or, if that is NULL, the time of this machine in milliseconds."""
    return f"coalesce(?{parameter}, CAST(unixepoch('subsec') * 1000 AS INTEGER))"


def json_text(value: object) -> str:
    """JSON as a parameter, or as the text of a column."""
    return msgspec.json.encode(value).decode()


def timed(sql: str) -> Statement:
    """A statement with `{now}`: parameter 1 or, if that is NULL, the time of the one database."""
    return Statement(sql.format(now=sqlite_moment_ms(1)).replace("$", "?"), sql.format(now=moment_ms(1)))


Script = Generator[tuple[Statement, tuple[object, ...]], list[Any], _T]


def rows_of(statement: Statement, *arguments: object) -> Script[list[Any]]:
    """A script of one statement."""
    return (yield statement, arguments)


def names_of(table: str, ids: tuple[int, ...]) -> Script[dict[int, str]]:
    """The names of rows by their identifiers, of those that there are."""
    if not ids:
        return {}
    wanted = padded(ids)
    return dict(
        (yield statement(f"SELECT id, name FROM {table} WHERE id IN ({placeholders(len(wanted))})"), wanted)
    )


def removal(table: str, key: str, condition: str) -> Statement:
    """Removes some of the rows that meet a condition, `timed`; returns one for each. Of several processes
    each takes rows that no other one holds.
    """
    some = timed(f"SELECT {key} FROM {table} WHERE {condition} LIMIT {REMOVED_AT_A_TIME}")
    whole = f"DELETE FROM {table} WHERE ({key}) IN ({{}}) RETURNING 1"
    return Statement(whole.format(some.sqlite), whole.format(f"{some.postgres} FOR UPDATE SKIP LOCKED"))


async def remove_all(database: Database, some: Statement, at_ms: int | None) -> None:
    """Carry out a `removal` until nothing is left, each time in a transaction of its own. `at_ms` is the
    parameter of its condition; None: the database's clock.
    """
    while len(await database.write(lambda: rows_of(some, at_ms))) == REMOVED_AT_A_TIME:
        pass


class Effect(msgspec.Struct, frozen=True):
    """The versions that a write moves; with `ends_access` it may use the space reserved for revocations."""

    catalogue: bool = False
    keyring: bool = False
    ends_access: bool = False


NO_EFFECT = Effect()
CATALOGUE = Effect(catalogue=True)
KEYRING = Effect(keyring=True)
REVOCATION = Effect(keyring=True, ends_access=True)


class Database(Protocol):
    """Runs scripts. Raises the script's errors, and StoreUnavailable."""

    async def read(self, script: Script[_T]) -> _T:
        """Run a script that changes nothing, outside a transaction: each statement may see later data."""

    def start(self, script: Callable[[], Script[_T]], effect: Effect = NO_EFFECT) -> asyncio.Future[_T]:
        """Begin a transaction of its own. Await it through a shield: a cancelled request must not cancel it.

        `script` makes a new generator for each attempt.
        """

    async def write(self, script: Callable[[], Script[_T]], effect: Effect = NO_EFFECT) -> _T:
        """The result of a transaction, which is durable when this returns."""
        return await asyncio.shield(self.start(script, effect))

    async def write_long(self, script: Callable[[], Script[_T]], effect: Effect) -> _T:
        """The result of a transaction that no bound on a statement's time suits."""
        return await self.write(script, effect)


class Repository:
    """What a store holds of one noun. Its methods are scripts: each is one transaction and may raise
    StoreUnavailable.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock


def read(
    script: Callable[Concatenate[R, P], Script[_T]],
) -> Callable[Concatenate[R, P], Coroutine[Any, Any, _T]]:
    """Make a script that changes nothing a coroutine method: `await` runs it by `Database.read`."""

    @wraps(script)
    async def method(self: R, /, *args: P.args, **kwargs: P.kwargs) -> _T:
        return await self._database.read(script(self, *args, **kwargs))

    return method


def reads(
    script: Callable[P, Script[_T]],
) -> Callable[Concatenate[Repository, P], Coroutine[Any, Any, _T]]:
    """Make a script that needs no repository, such as one that others call, a method as `read` does."""

    @wraps(script)
    async def method(self: Repository, /, *args: P.args, **kwargs: P.kwargs) -> _T:
        return await self._database.read(script(*args, **kwargs))

    return method


def write(
    effect: Effect, *, checks: bool = False
) -> Callable[
    [Callable[Concatenate[R, int, P], Script[_T]]], Callable[Concatenate[R, P], Coroutine[Any, Any, _T]]
]:
    """Make a script a coroutine method: `await` runs it by `Database.write`, with this effect.

    The script's first parameter is `now_ms`, which callers leave out: the clock's time at the call, the same
    in each attempt. `checks`: what it does before its first statement is done before the transaction, too.
    """

    def decorate(
        script: Callable[Concatenate[R, int, P], Script[_T]],
    ) -> Callable[Concatenate[R, P], Coroutine[Any, Any, _T]]:
        @wraps(script)
        async def method(self: R, /, *args: P.args, **kwargs: P.kwargs) -> _T:
            now_ms = self._clock.now_ms()

            def make() -> Script[_T]:
                return script(self, now_ms, *args, **kwargs)

            if checks:
                next(make(), None)
            return await self._database.write(make, effect)

        return method

    return decorate
