"""What the parts need: an event loop as the server has it, a store with animals and a key, a request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from petstore.core.clock import SystemClock
from petstore.http.exchange import Exchange
from petstore.http.heads import Head
from petstore.storage.backend import backend_for
from petstore.storage.store import Store
from tools.exchanges import Wire
from verification.benchmarks.data import copy_of, database

ANIMALS = 1_000
CALLS = 100


class Loop:
    """Runs coroutines to their end. Starting the loop costs more than a call does, so many go in one run."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def run(self, awaitable: Awaitable[Any]) -> Any:
        return self._loop.run_until_complete(awaitable)

    def calls_in_one_turn(self, call: Callable[[], Awaitable[Any]]) -> None:
        """CALLS calls one after another, as for requests that arrived at once."""

        async def all_of_them() -> None:
            for _ in range(CALLS):
                await call()

        self.run(all_of_them())

    def calls_in_turns(self, call: Callable[[], Any]) -> None:
        """CALLS calls, each in a turn of the loop of its own, as for requests that arrived apart."""

        async def all_of_them() -> None:
            for _ in range(CALLS):
                await asyncio.create_task(call())

        self.run(all_of_them())


@pytest.fixture
def loop() -> Iterator[Loop]:
    """The server's kind of loop."""
    opened = uvloop.new_event_loop()
    yield Loop(opened)
    opened.close()


@pytest.fixture
def database_copy(tmp_path: Path) -> tuple[Path, str]:
    """A database of its own, and a key whose limits nothing here reaches."""
    source, (key, *_) = database(ANIMALS)
    return copy_of(source, tmp_path), key


@pytest.fixture
def store(loop: Loop, database_copy: tuple[Path, str]) -> Iterator[Store]:
    """The real store."""
    opened = backend_for(f"sqlite:///{database_copy[0]}").open(SystemClock())
    yield opened
    loop.run(opened.close())


@pytest.fixture
def wire() -> Wire:
    """The connection to which the answer goes."""
    return Wire()


@pytest.fixture
def exchange(wire: Wire, database_copy: tuple[Path, str]) -> Exchange:
    """The list of animals, as the HTTP server hands it over."""
    headers = [
        (b"host", b"127.0.0.1:8080"),
        (b"authorization", f"Bearer {database_copy[1]}".encode()),
        (b"accept", b"application/json"),
        (b"user-agent", b"micro/1.0"),
    ]
    return Exchange(
        wire, "GET", b"/v1/pets", b"limit=20&status=available", Head(headers), ("127.0.0.1", 50_000)
    )
