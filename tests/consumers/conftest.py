"""Real servers for the tools, and the contract as a server gives it out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from petstore.core.keys import Access
from tests.support.outside import save_contract
from tests.support.server import Server, issue_key, running_server
from tools.servers.ports import free_port

# The examples of the contract speak of animals up to this number.
_ANIMALS = 9


@contextmanager
def _stocked_server(folder: Path) -> Iterator[Server]:
    """A server that knows its address, as in production. Its key may do everything, with a large quota."""
    key = issue_key(folder / "petstore.db", access=Access.MANAGE)
    port = free_port()
    address = f"http://127.0.0.1:{port}/v1"
    # Nobody listens at the proxy, so that a test of a webhook fails at once.
    settings = {"access_log": "off", "webhook_proxy": "http://127.0.0.1:1"}
    with running_server(folder, port=port, base_url=address, **settings) as started:
        started.key = key
        for _ in range(_ANIMALS):
            assert started.post({"name": "Rex", "categoryId": 1}).status == 201
        yield started


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for all tests here: each lists a category of its own, or by identifiers."""
    with _stocked_server(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[Server]:
    """One for a single test, which finds the animals that the examples name and no order."""
    with _stocked_server(tmp_path) as started:
        yield started


@pytest.fixture(scope="session")
def contract(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The served document as a file."""
    return save_contract(server, tmp_path_factory.mktemp("contract"))
