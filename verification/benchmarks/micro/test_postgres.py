"""CPU of this process for calls of the PostgreSQL store, 100 in a round; the server's own is not in it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from petstore.core.clock import SystemClock
from petstore.core.digests import digest
from petstore.core.limits.plans import FREE
from petstore.core.pets import NewPet, PageQuery, PetStatus
from petstore.storage.backend import backend_for
from petstore.storage.store import Store
from tests.support.postgres import fresh_database, run
from verification.benchmarks.micro.conftest import Loop

pytestmark = pytest.mark.benchmark(timer=time.process_time)
ANIMALS = (
    "SELECT 'pet', g, (ARRAY['available', 'pending', 'sold'])[1 + g % 3] FROM generate_series(1, 1000) g"
)


@pytest.fixture
def url() -> Iterator[str]:
    with fresh_database() as made:
        yield made


@pytest.fixture
def postgres(url: str, loop: Loop) -> Iterator[Store]:
    """A thousand animals."""
    opened = backend_for(url).open(SystemClock())
    run(url, f"INSERT INTO pets (name, category_id, status) {ANIMALS}; ANALYZE pets")
    yield opened
    loop.run(opened.close())


def test_100_pages_of_20(benchmark: BenchmarkFixture, loop: Loop, postgres: Store) -> None:
    """Measured from the query to the animals. All but the first share statements."""
    places = itertools.cycle(range(600))
    benchmark(
        loop.calls_in_one_turn,
        lambda: postgres.pets.page(PageQuery(status=PetStatus.AVAILABLE, after_id=next(places))),
    )


def test_100_grants(benchmark: BenchmarkFixture, loop: Loop, postgres: Store) -> None:
    """What the gate reads of a key that is not kept."""
    loop.run(postgres.accounts.add("bench", FREE, "bench"))
    issued = loop.run(postgres.keys.issue("bench", "test", "bench"))
    key_digest = digest(issued.secret.encode("ascii"))
    benchmark(loop.calls_in_one_turn, lambda: postgres.keys.find_caller(key_digest))


def test_100_versions(benchmark: BenchmarkFixture, loop: Loop, postgres: Store) -> None:
    """One after another, so that none is shared."""
    benchmark(loop.calls_in_one_turn, postgres.versions.current)


def test_100_additions(benchmark: BenchmarkFixture, loop: Loop, postgres: Store) -> None:
    """Each is one statement and one commit."""
    benchmark(loop.calls_in_one_turn, lambda: postgres.pets.add(NewPet("Rex", 1), "bench"))
