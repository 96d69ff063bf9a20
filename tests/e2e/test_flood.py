"""A crowd without keys, before a service on PostgreSQL: it never takes the place of somebody with a key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cluster import Load
from tests.support.flood import CONNECTIONS, READINESS, Flood, unknown_keys
from tests.support.postgres import fresh_database
from tests.support.server import Server, issue_key, running_server

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("e2e-flood")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One service on PostgreSQL, with the pool and the bounds that it has by default."""
    with fresh_database() as url:
        key = issue_key(url)
        folder = tmp_path_factory.mktemp("flood")
        with running_server(folder, database_url=url, access_log="off") as running:
            running.key = key
            yield running


@pytest.mark.parametrize(
    ("requests", "answers"),
    [(READINESS, {200}), (unknown_keys(), {401, 429})],
    ids=["readiness", "unknown-keys"],
)
def test_a_crowd_without_keys_takes_nobodys_place(
    server: Server, requests: list[bytes], answers: set[int]
) -> None:
    """1,300 connections ask for readiness, or send keys that nobody was given. Requests with a key, some of
    which add an animal, are all carried out; the crowd gets the answers that it would get alone; the service
    stays ready. The clients' address is the crowd's: what that used up is nothing to a valid key."""
    flood = Flood(server.port, requests)
    with flood.going_on(), Load(server.port, server.key) as load:
        load.wait_for_more(12)
        assert server.request("GET", "/readyz", key="").status == 200
    assert load.failed == []
    assert set(load.answered) == {"list", "plain", "keyed"}
    assert (set(flood.statuses), flood.broken) == (answers, 0), flood.statuses
    assert sum(flood.statuses.values()) >= CONNECTIONS
