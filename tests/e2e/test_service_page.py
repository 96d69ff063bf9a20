"""The console's service page with real workers, PostgreSQL and Valkey: numbers of all, and no secret."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.backends import in_store
from tests.support.console_places import add_people
from tests.support.postgres import fresh_database
from tests.support.server import Server, issue_key, running_server
from tests.support.valkey import ValkeyServer
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

PASSWORD = "known-to-nobody"
WORKERS = 2


def with_password(url: str) -> str:
    """The address with a password, for a server that asks for none."""
    assert "petstore@" in url
    return url.replace("petstore@", f"petstore:{PASSWORD}@", 1)


def sign_in(url: str) -> str:
    """The token of a new operator's session."""
    return in_store(url, add_people).token


def page(server: Server, token: str) -> str:
    cookie = {"Cookie": f"petstore-session={token}"}
    answer = server.request("GET", "/console/service", key="", headers=cookie)
    assert answer.status == 200
    return answer.body.decode()


def test_an_outage_of_valkey_is_that_of_all_workers_and_no_secret_is_shown(tmp_path: Path) -> None:
    """Either worker tells of both, while Valkey is gone and when it is back. No password, no address of
    Valkey, before or meanwhile."""
    with fresh_database() as url, ValkeyServer().start() as valkey:
        key = issue_key(url)
        settings = {
            "database_url": with_password(url),
            "valkey_url": valkey.url,
            "workers": str(WORKERS),
            "console": "on",
        }
        with running_server(tmp_path, **settings) as server:
            token = sign_in(url)
            wait_for(lambda: f"{WORKERS} of {WORKERS} serve" in page(server, token), "all workers")
            sound = page(server, token)
            assert "in reach; lost 0 times" in sound
            valkey.kill()

            def both_are_out() -> bool:
                server.request("GET", "/v1/pets", key=key)
                shown = page(server, token)
                return f"{WORKERS} of {WORKERS} processes can&#39;t reach Valkey" in shown

            wait_for(both_are_out, "the outage of both workers")
            lost = page(server, token)
            assert "each process grants its share of the limits" in lost
            valkey.start()
            wait_for(lambda: "in reach; lost" in page(server, token), "the end of the outage")
            times = re.search(r"in reach; lost (\d+) times", page(server, token))
            assert times is not None
            assert int(times[1]) >= WORKERS
            for shown in (sound, lost):
                assert PASSWORD not in shown
                assert str(valkey.socket) not in shown
                assert "PostgreSQL" in shown
