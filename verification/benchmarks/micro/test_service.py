"""Parts that run on the event loop. One round is CALLS calls, or for the commit one group."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from pytest_benchmark.fixture import BenchmarkFixture

from petstore import config
from petstore.api.pipeline.gate import Gate
from petstore.api.pipeline.request import read_request
from petstore.core.clock import SystemClock
from petstore.core.keys import Access
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.usage import UsageMeter
from petstore.core.pets import NewPet, PageQuery, PetStatus
from petstore.http.exchange import Exchange
from petstore.limiter.address_limiter import AddressLimiter
from petstore.limiter.memory import MemoryLimiter
from petstore.storage.store import Store
from petstore.wiring.application import Application
from tools.exchanges import Wire
from verification.benchmarks.micro.conftest import Loop

GROUP = 64


def test_read_a_head(benchmark: BenchmarkFixture, exchange: Exchange) -> None:
    """The headers of a request are read and measured."""
    assert benchmark(read_request, exchange).head.token


def test_100_times_the_gate(
    benchmark: BenchmarkFixture, loop: Loop, store: Store, exchange: Exchange
) -> None:
    """A cached key passes, and the request is counted."""
    clock = SystemClock()
    gate = Gate(
        keys=store.keys,
        limiter=MemoryLimiter(clock, BanPolicy(), store.versions),
        addresses=AddressLimiter(clock, 600),
        meter=UsageMeter(),
        clock=clock,
    )
    request = read_request(exchange)

    async def pass_first() -> None:
        assert not gate.try_admit(request, Access.READ, False)
        await gate.admit(request, Access.READ, False)  # reads the key, and the version

    loop.run(pass_first())

    async def pass_by() -> None:
        assert gate.try_admit(request, Access.READ, False)

    benchmark(loop.calls_in_one_turn, pass_by)


def test_100_looks_at_the_version(benchmark: BenchmarkFixture, loop: Loop, store: Store) -> None:
    """Whether anybody has changed the database is asked once in each turn of the loop."""

    async def look() -> None:
        assert store.versions.known().catalogue is not None

    benchmark(loop.calls_in_turns, look)


def test_100_pages_from_sqlite(benchmark: BenchmarkFixture, loop: Loop, store: Store) -> None:
    """A page of 20 animals by status is read from the database."""
    query = PageQuery(20, PetStatus.AVAILABLE)
    benchmark(loop.calls_in_one_turn, lambda: store.pets.page(query))
    assert len(loop.run(store.pets.page(query)).pets) == 20


def test_a_commit_of_64_additions(benchmark: BenchmarkFixture, loop: Loop, store: Store) -> None:
    """As many additions that arrive at once are durable together."""
    new = NewPet("Rex", 1)

    async def group() -> set[int]:
        created = await asyncio.gather(*(store.pets.add(new, "bench") for _ in range(GROUP)))
        return {one.pet.id for one in created}

    assert len(benchmark(lambda: loop.run(group()))) == GROUP


def test_100_cached_pages_through_the_application(
    benchmark: BenchmarkFixture, loop: Loop, exchange: Exchange, wire: Wire, database_copy: tuple[Path, str]
) -> None:
    """The whole of the application answers from the page cache: gate, limits, headers, metrics."""
    environment = {"PETSTORE_DATABASE_URL": f"sqlite:///{database_copy[0]}", "PETSTORE_ACCESS_LOG": "off"}
    application = Application(config.load(environment))

    async def ask() -> None:
        wire.written = b""
        application(exchange)

    loop.run(application.start())
    try:
        for _ in range(2):
            loop.run(ask())
            loop.run(wire.answer())
        benchmark(loop.calls_in_turns, ask)
    finally:
        loop.run(application.stop())
    status, _, body = loop.run(wire.answer())
    assert status == 200
    assert len(json.loads(body)) == 20
