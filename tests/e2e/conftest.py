"""Servers for the tests of a module; each module runs in one worker of a parallel run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres import fresh_database
from tests.support.server import Server, issue_key, running_server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the module's server has its database and its output."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """A server with a short deadline for bodies and a key of a large quota that was never printed."""
    key = issue_key(folder / "petstore.db")
    with running_server(folder, body_timeout="1s") as running:
        running.key = key
        yield running


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/petstore.db"
        return
    with fresh_database() as address:
        yield address
