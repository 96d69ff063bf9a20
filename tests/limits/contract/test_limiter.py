"""What every limiter does: it decides as the model says, for any history with restarts (I7, I8)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.decision import Decision
from petstore.core.limits.plans import resolve_plan
from petstore.storage.backend import backend_for
from petstore.storage.store import Store
from tests.support.backends import LIMITERS, LimiterBackend, make_file
from tests.support.clock import ManualClock
from tests.support.histories import ACCOUNT_OF_KEY, POLICY, Event, Restart, compare, histories, telling
from tests.support.journal import ACTOR
from tests.support.windows import limits_of


@asynccontextmanager
async def limiter_of_histories(kind: str, folder: Path, clock: ManualClock) -> AsyncIterator[LimiterBackend]:
    """A limiter in whose store the accounts and keys of the histories exist, with their ids."""
    path = folder / f"{secrets.token_hex(8)}.db"
    make_file(path)
    store = backend_for(f"sqlite:///{path}").open(clock)
    try:
        for account in sorted(set(ACCOUNT_OF_KEY.values())):
            await store.accounts.add(f"account-{account}", resolve_plan("free"), ACTOR)
        for account in ACCOUNT_OF_KEY.values():
            await store.keys.issue(f"account-{account}", "test", ACTOR)
        limiter = LIMITERS[kind](store, clock, POLICY)
        yield limiter
        await limiter.close()
    finally:
        await store.close()


@pytest.fixture
async def limiter(limiter_kind: str, store: Store, clock: ManualClock) -> AsyncIterator[LimiterBackend]:
    """A limiter with the default rule of bans, and two accounts in its store."""
    for name in ("a", "b"):
        await store.accounts.add(name, resolve_plan("free"), ACTOR)
        await store.keys.issue(name, "test", ACTOR)
    opened = LIMITERS[limiter_kind](store, clock, BanPolicy())
    yield opened
    await opened.close()


@pytest.mark.slow
@telling
@given(events=histories())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_decides_as_the_rules_say(limiter_kind: str, tmp_path: Path, events: list[Event]) -> None:
    """I8: the same Decisions as the model's, with restarts through the counter store in between."""

    async def run() -> None:
        clock = ManualClock()
        async with limiter_of_histories(limiter_kind, tmp_path, clock) as limiter:
            await compare(events, clock, limiter.take, limiter.restart)

    asyncio.run(run())


@pytest.mark.slow
@telling
@given(events=histories())
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_peek_says_what_is_left_and_takes_nothing(
    limiter_kind: str, tmp_path: Path, events: list[Event]
) -> None:
    """A peek before a request says what is left: the request then finds one less, or nothing where it is
    refused. All decisions are the same as if nobody had peeked."""
    clock = ManualClock()
    running: list[Event] = [event for event in events if not isinstance(event, Restart)]

    async def run() -> None:
        async with limiter_of_histories(limiter_kind, tmp_path, clock) as limiter:

            async def peek_and_take(caller: Caller) -> Decision:
                seen, taken = await limiter.peek(caller), await limiter.take(caller)
                assert seen.allowed != (taken.banned and not taken.ban_began)
                assert seen.banned != seen.allowed
                if taken.allowed:
                    assert seen.remaining == tuple(left + 1 for left in taken.remaining)
                if not taken.ban_began:
                    assert (seen.reset_at, seen.limits) == (taken.reset_at, taken.limits)
                    assert taken.allowed or seen.remaining == taken.remaining
                return taken

            await compare(running, clock, peek_and_take, limiter.restart)

    asyncio.run(run())


async def test_parallel_requests_are_admitted_to_the_limit_exactly(limiter: LimiterBackend) -> None:
    """I7: 200 at once, 60 pass, each with a Remaining of its own."""
    decisions = await asyncio.gather(*(limiter.take(Caller(1, 1, limits_of(60, 1_000))) for _ in range(200)))
    left = [decision.windows[0].remaining for decision in decisions if decision.allowed]
    assert sorted(left) == list(range(60))
