"""The Python client against one process with SQLite; test_cluster.py has the same on the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.day import play_day, use_up
from tests.support.server import Server, issue_key

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-client")]


def test_a_customers_day(server: Server) -> None:
    """Each call of the day does what its name says, and every page is walked."""
    with server.client() as client:
        play_day(client, category_id=7)


def test_a_used_up_minute(server: Server, folder: Path) -> None:
    """The client counts along with the service, and does not send what would be refused."""
    key = issue_key(folder / "petstore.db", "small", per_minute=3)
    with server.client(key) as client:
        use_up(client, 3)
    assert server.request("GET", "/v1/categories", key=key).status == 429
