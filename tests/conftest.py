"""Fixtures of the whole suite."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import pytest_asyncio
import structlog

import petstore.server  # noqa: F401  first, as in the service: with rich each logged traceback takes 100 ms
from tests.support.clock import ManualClock
from tests.support.distribution import keep_groups_together, keep_status
from tests.support.machine import forget_settings, memory, needing_others
from tests.support.measuring import is_measured, leave_to_workers, unmeasured
from tests.support.service import Shop, open_shop


def pytest_configure(config: pytest.Config) -> None:
    """Forget settings, and that a shell ignores Ctrl+C for what it runs in the background; keep the files of
    tests in memory where there is room: thousands of databases are synced otherwise."""
    forget_settings()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    leave_to_workers(config)
    if (place := memory()) is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(place))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Let the first worker alone measure what imports run: the others import the same.

    Search for no garbage meanwhile: what is made stays to the end, modules and thousands of tests.
    """
    others = getattr(session.config, "workerinput", {}).get("workerid", "gw0") != "gw0"
    gc.disable()
    with unmeasured() if others else nullcontext():
        collected = yield
    _collect_and_freeze()
    gc.enable()
    return collected


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out what would skip; keep groups together."""
    left_out = set(needing_others(items))
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))
    keep_groups_together(config, items)


pytest_sessionfinish = keep_status


def _collect_and_freeze() -> None:
    """Spare the next collections what is still used. Nothing here makes cycles by the thousand, so they need
    not be searched for as often as by default."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Stop measuring coverage for a test that does not count for it."""
    with nullcontext() if is_measured(item) else unmeasured():
        return (yield)


@pytest.hookimpl(wrapper=True)
def _apart() -> Generator[None, object, object]:
    """Trace nothing of what pytest does to make a module's tests, and after each part of a test."""
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)


pytest_pycollect_makeitem = pytest_runtest_makereport = pytest_runtest_logreport = _apart


@pytest.fixture(autouse=True, scope="module")
def _nothing_left() -> Iterator[None]:
    """What a module's tests leave open is an error at its end, not when memory happens to be collected; the
    log's level that a service set in this process is not the next module's."""
    yield
    structlog.reset_defaults()
    _collect_and_freeze()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def shop(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Shop]:
    """The production service in process, on a file of its own."""
    async with open_shop(tmp_path, clock) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lasting_shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """One for all tests of a module, with an animal: for requests that change nothing."""
    async with open_shop(tmp_path_factory.mktemp("shop")) as opened:
        await opened.post({"name": "Mia", "categoryId": 2})
        yield opened


@pytest.fixture
def shared_shop(lasting_shop: Shop) -> Shop:
    """That, in a minute that nobody has used. A module whose `shop` it is runs in one event loop."""
    lasting_shop.clock.advance(60)
    return lasting_shop
