"""Every test of a store may ask for one of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.backends import backend, database, store
from tests.support.postgres import fresh_database

__all__ = ["backend", "database", "store"]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database of each kind, with nothing in it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/schema.db"
        return
    with fresh_database() as address:
        yield address
