"""The event loop of the service for these tests, and a log that has every line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop

from tests.http.kit import Later, Peer


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Make the event loop as worker.run makes it."""
    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def application() -> Later:
    return Later()


@pytest.fixture
async def peer(application: Later) -> Peer:
    """The client of one connection to the application."""
    return Peer(application)
