"""CPU of this process for decisions by Valkey, 640 in a round; the server's own is not in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from petstore.core.clock import SystemClock
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.decision import Decision
from petstore.limiter.valkey.client import open_client
from petstore.limiter.valkey.connection import connect
from petstore.limiter.valkey.limiter import ValkeyLimiter
from petstore.limiter.valkey.scripts import (
    CATALOGUE,
    CATALOGUE_WRITERS,
    EPOCH,
    KEYRING,
    KEYRING_WRITERS,
    Scripts,
    command,
)
from petstore.limiter.valkey.url import parse_url
from tests.support.counter_store import MemoryCounterStore
from tests.support.valkey import PATIENT, emptied_url
from verification.benchmarks.micro.conftest import Loop

pytestmark = pytest.mark.benchmark(timer=time.process_time)
CALLS = 640
CALLER = Caller(1, 1, (100_000_000, 1_000_000_000))
KEYS = (
    *(CATALOGUE, KEYRING, CATALOGUE_WRITERS, KEYRING_WRITERS, EPOCH),
    *(b"{petstore}:windows:1", b"{petstore}:standing:1"),
)
ARGUMENTS = (
    b"60 300000 2000 86400000 60000 300000 900000 3600000",
    b"100000000 1000000000 0 0 0 1",
    b"1",  # the epoch, which the benchmark sets
    b"-60000 0 0 0",
    b"-",
)
at_a_time = pytest.mark.parametrize("clients", [1, 8, 64])


@pytest.fixture
def url() -> str:
    return emptied_url()


def calls(clients: int, call: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[None]]:
    """All of the calls, so many at a time."""

    async def client() -> None:
        for _ in range(CALLS // clients):
            await call()

    async def all_of_them() -> None:
        await asyncio.gather(*(client() for _ in range(clients)))

    return all_of_them


@at_a_time
def test_640_decisions(benchmark: BenchmarkFixture, loop: Loop, url: str, clients: int) -> None:
    """Measured from the caller to the Decision, by the limiter of the service."""
    client = loop.run(open_client(url, PATIENT))
    limiter = ValkeyLimiter(client, MemoryCounterStore(), SystemClock(), BanPolicy())
    every = calls(clients, lambda: limiter.take(CALLER))
    benchmark(lambda: loop.run(every()))
    loop.run(client.close())


@pytest.mark.parametrize("keys", [1, 64])
@at_a_time
def test_640_decisions_of_turns(
    benchmark: BenchmarkFixture, loop: Loop, url: str, clients: int, keys: int
) -> None:
    """Decisions for cached callers, as the gate asks: each iteration of the event loop is a call."""
    client = loop.run(open_client(url, PATIENT))
    limiter = ValkeyLimiter(client, MemoryCounterStore(), SystemClock(), BanPolicy())
    callers = [msgspec.structs.replace(CALLER, key_id=number + 1) for number in range(keys)]

    async def every() -> None:
        decisions = [await limiter.take(caller) for caller in callers]
        assert decisions[-1] is not None
        left, done, version = CALLS, asyncio.Event(), decisions[-1].versions.keyring

        def on_decision(caller: Caller, decision: Decision | None) -> None:
            nonlocal left
            left -= 1
            if left >= clients:
                ask(callers[left % keys])
            elif not left:
                done.set()

        def ask(caller: Caller) -> None:
            if not limiter.take_later(caller, version, on_decision):
                done.set()  # the lease has ended, once in five seconds

        for number in range(clients):
            ask(callers[number % keys])
        await done.wait()

    benchmark(lambda: loop.run(every()))
    loop.run(client.close())


@at_a_time
def test_640_scripts_by_our_connection(
    benchmark: BenchmarkFixture, loop: Loop, url: str, clients: int
) -> None:
    """The bare call of the script, to compare clients by."""
    script = Scripts().take
    begin = command(b"SET", EPOCH, ARGUMENTS[2])
    connection = loop.run(connect(parse_url(url), script.load, begin, patience_seconds=PATIENT))
    evalsha = (b"EVALSHA", script.digest, b"%d" % len(KEYS), *KEYS, *ARGUMENTS)

    async def call() -> None:
        assert (await connection.call(command(*evalsha)))[0][0] == 2

    every = calls(clients, call)
    benchmark(lambda: loop.run(every()))
    loop.run(connection.close())


@at_a_time
def test_640_scripts_by_valkey_py(benchmark: BenchmarkFixture, loop: Loop, url: str, clients: int) -> None:
    """Decisions by the client library, where it is installed: it is none of our dependencies."""
    library = pytest.importorskip("valkey.asyncio", reason="pip install valkey to compare with it")
    client = library.Valkey.from_url(url)
    digest = loop.run(client.script_load(Scripts().take.text))
    loop.run(client.set(EPOCH, ARGUMENTS[2]))

    async def call() -> None:
        assert (await client.evalsha(digest, len(KEYS), *KEYS, *ARGUMENTS))[0][0] == 2

    every = calls(clients, call)
    benchmark(lambda: loop.run(every()))
    loop.run(client.aclose())
