"""The event loop of the service for these tests, and a log that has every line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import structlog
import uvloop

from tests.http.kit import Later, Peer


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """As worker.run makes it."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture(autouse=True)
def log_of_all_levels() -> None:
    """A service that ran in this process before may have left a level above `info`."""
    structlog.reset_defaults()


@pytest.fixture
def application() -> Later:
    return Later()


@pytest.fixture
async def peer(application: Later) -> Peer:
    """The client of one connection to the application."""
    return Peer(application)
