"""A real server for the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.server import Server, issue_key, running_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server with one animal; its key has room for everything that the tests ask."""
    folder = tmp_path_factory.mktemp("site")
    key = issue_key(folder / "petstore.db")
    with running_server(folder, access_log="off") as started:
        started.key = key
        assert started.post({"name": "Rex", "categoryId": 1}).status == 201
        yield started
