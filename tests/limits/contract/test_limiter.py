"""What every limiter does: it decides as the model says, for any history with restarts (I7, I8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.plans import resolve_plan
from petstore.storage.backend import backend_for
from petstore.storage.store import Store
from tests.support.backends import LIMITERS, LimiterBackend
from tests.support.clock import ManualClock
from tests.support.histories import ACCOUNT_OF_KEY, POLICY, Event, compare, histories, telling
from tests.support.journal import ACTOR


async def store_with_the_histories_keys(path: Path, clock: ManualClock) -> Store:
    """A store in which the accounts and keys of the histories exist, with their ids."""
    store = backend_for(f"sqlite:///{path}").open(clock)
    for account in sorted(set(ACCOUNT_OF_KEY.values())):
        await store.accounts.add(f"account-{account}", resolve_plan("free"), ACTOR)
    for account in ACCOUNT_OF_KEY.values():
        await store.keys.issue(f"account-{account}", "test", ACTOR)
    return store


@pytest.fixture
async def limiter(limiter_kind: str, store: Store, clock: ManualClock) -> AsyncIterator[LimiterBackend]:
    """With the default rule of bans, and two accounts in its store."""
    for name in ("a", "b"):
        await store.accounts.add(name, resolve_plan("free"), ACTOR)
        await store.keys.issue(name, "test", ACTOR)
    opened = LIMITERS[limiter_kind](store, clock, BanPolicy())
    yield opened
    await opened.close()


@pytest.mark.slow
@telling
@given(events=histories())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_decides_as_the_rules_say(limiter_kind: str, tmp_path: Path, events: list[Event]) -> None:
    """I8: the same Decisions as the model's, with restarts through the counter store in between."""

    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.db"

    async def run() -> None:
        clock = ManualClock()
        store = await store_with_the_histories_keys(path, clock)
        try:
            limiter = LIMITERS[limiter_kind](store, clock, POLICY)
            await compare(events, clock, limiter.take, limiter.restart)
            await limiter.close()
        finally:
            await store.close()

    asyncio.run(run())


async def test_parallel_requests_are_admitted_to_the_limit_exactly(limiter: LimiterBackend) -> None:
    """I7: 200 at once, 60 pass, each with a Remaining of its own."""
    decisions = await asyncio.gather(*(limiter.take(Caller(1, 1, (60, 1_000))) for _ in range(200)))
    left = [decision.windows[0].remaining for decision in decisions if decision.allowed]
    assert sorted(left) == list(range(60))
