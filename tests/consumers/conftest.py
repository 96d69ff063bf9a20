"""One real server for the tools of a module, and the contract as it serves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server import Server, issue_key, running_server
from tools.servers.ports import free_port


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that knows its address, as in production, with one animal and a key of a large quota."""
    folder = tmp_path_factory.mktemp("server")
    key = issue_key(folder / "petstore.db")
    port = free_port()
    with running_server(
        folder, port=port, base_url=f"http://127.0.0.1:{port}/v1", access_log="off"
    ) as started:
        started.key = key
        assert started.post({"name": "Rex", "categoryId": 1}).status == 201
        yield started


@pytest.fixture(scope="module")
def contract(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The served document as a file."""
    path = tmp_path_factory.mktemp("contract") / "openapi.json"
    answer = server.request("GET", "/openapi.json", key="")
    assert answer.status == 200
    path.write_bytes(answer.body)
    return path
