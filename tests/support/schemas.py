"""Schemas of other versions of the program: what it knows is changed, not the database."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from petstore.storage import migrations
from petstore.storage.backend import sqlite_path
from petstore.storage.migrations import Migration
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres import schema as postgres
from petstore.storage.sqlite import schema as sqlite
from tests.support.backends import execute_at

# What 1.0.0 knows of each store: it takes the noted `oldest` for the version, and refuses a greater one.
FIRST_RELEASE = {sqlite.MIGRATIONS_PACKAGE: 1, postgres.MIGRATIONS_PACKAGE: 2}
Know = Callable[..., None]
_T = TypeVar("_T")


def migrate(url: str, busy_timeout_ms: int = 1_000) -> list[str]:
    """The names of the steps that this program has run on a database of either kind."""
    if url.startswith("sqlite"):
        return sqlite.migrate(sqlite_path(url), busy_timeout_ms)
    return postgres.migrate(url, PostgresOptions())


def make_first_release(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new database as 1.0.0 makes it: its own steps, and no table that notes them."""
    load = migrations.load
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "load", lambda package: load(package)[: FIRST_RELEASE[package]])
        migrate(url)
    execute_at(url, "DROP TABLE schema_steps")


def at_once(work: Callable[[], _T], threads: int = 8) -> list[_T]:
    """What so many threads get from the same work, which they begin at the same moment."""
    barrier = threading.Barrier(threads)

    def begin(_: int) -> _T:
        barrier.wait()
        return work()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begin, range(threads)))


def knowing(monkeypatch: pytest.MonkeyPatch) -> Know:
    """A function that lets the program know further steps after its own, and without any only its own.

    A step is SQL, or SQL and the `oldest` relative to its own number: 0 shuts every older program out.
    """
    load = migrations.load

    def know(*further: str | tuple[str, int]) -> None:
        def known(package: str) -> tuple[Migration, ...]:
            steps = list(load(package))
            for step in further:
                sql, back = step if isinstance(step, tuple) else (step, None)
                number = steps[-1].number + 1
                oldest = steps[-1].oldest if back is None else number - back
                steps.append(Migration(number, f"step_{number}", sql, oldest))
            return tuple(steps)

        monkeypatch.setattr(migrations, "load", known)

    return know
