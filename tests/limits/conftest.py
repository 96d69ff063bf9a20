"""Every test of a limiter may ask for one of each kind, and for the stores behind them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.backends import backend, database, limiter_kind, store
from tests.support.valkey import ValkeyServer

__all__ = ["backend", "database", "limiter_kind", "store"]


@pytest.fixture
def server() -> Iterator[ValkeyServer]:
    """A Valkey of the test's own."""
    with ValkeyServer().start() as opened:
        yield opened
