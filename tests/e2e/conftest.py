"""Servers for the tests of a module; each module runs in one worker of a parallel run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.backends import url
from tests.support.server import Server, issue_key, running_server

__all__ = ["url"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the module's server, with its database and its output."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """A server with a short deadline for bodies and a key of a large quota that was never printed."""
    key = issue_key(folder / "petstore.db")
    with running_server(folder, body_timeout="1s") as running:
        running.key = key
        yield running
