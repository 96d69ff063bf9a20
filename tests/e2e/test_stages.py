"""`make serve`: production and staging side by side, and nothing of one in the other."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from petstore.core.keys import KEY_PATTERN
from petstore.storage.store import Store
from tests.architecture.sources import ROOT
from tests.support.backends import in_store
from tests.support.contract import table
from tests.support.journal import ACTOR
from tests.support.receiver import receiving
from tests.support.server import Server
from tests.support.terminal import terminal
from tests.support.waiting import wait_for
from tools.serve import environments
from tools.servers.child import Child, children
from tools.servers.petstore import environment
from tools.servers.ports import free_ports, is_free

_LINK = re.compile(r"http://\S+/console/link/\S+")
_FIRST = re.compile(r"First start.*?curl -i [^\n]*\n\n", re.S)
_MARK = "only here"  # stands in all that is made at production


class Both(Child):
    """`make serve` at a terminal, in a folder of its own; `first` and `second` are the two services."""

    def __init__(self, folder: Path, screen: int, log: Path) -> None:
        super().__init__("make serve", [sys.executable, "-m", "tools.serve"], log, cwd=folder, stderr=screen)
        ports = free_ports(2)
        self.first = Server(folder, port=ports[0], stage="production")
        self.second = Server(folder, port=ports[1], stage="staging")
        self.second.settings["database_url"] = f"sqlite:///{folder}/petstore-staging.db"

    def launch(self) -> None:
        """Start the program as `make` does."""
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        variables = {"PYTHONPATH": path, "SSL_CERT_FILE": os.devnull}
        self.start(environment({"port": str(self.first.port), "drain": "0s"}) | variables)

    def stopped(self, number: signal.Signals) -> int:
        """The exit code of a server after a signal to it alone."""
        self.process.send_signal(number)
        return self.process.wait(20)


@contextmanager
def serving(folder: Path) -> Iterator[Both]:
    """Started, and killed at the end with what it has started."""
    with terminal(folder / "log") as screen:
        both = Both(folder, screen, folder / "log")
        try:
            both.launch()
            yield both
        finally:
            for number in (signal.SIGTERM, signal.SIGKILL):
                both.stop(number)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Both are ready, and each has the key that its first start printed."""
    with serving(tmp_path_factory.mktemp("both")) as both:
        both.wait_until(lambda: len(_FIRST.findall(both.said)) == 2)
        for service, told in zip((both.first, both.second), _FIRST.findall(both.said), strict=True):
            service.key = KEY_PATTERN.findall(told)[0]
        both.wait_until(both.second.is_ready)
        yield both


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.xdist_group("e2e-stages")
class TestBoth:
    """Over their sockets, as customers and staff see them."""

    def test_the_first_start_says_whose_each_key_is(self, both: Both) -> None:
        """Production's key, link and line to paste, then staging's, which begins with animals to try."""
        begin, production, staging = re.split("First start", both.said)
        assert "staging" not in begin + production.partition("curl -i")[0]
        assert staging.startswith(" of staging: ")
        assert f"staging: Pet Store Service at http://127.0.0.1:{both.second.port}/v1" in production
        assert (both.first.key[:10], both.second.key[:10]) == ("pets_live_", "pets_test_")
        for service, link in zip((both.first, both.second), _LINK.findall(both.said), strict=True):
            assert link.startswith(service.base_url)
            assert service.request("GET", link.removeprefix(service.base_url), key="").status == 200
        assert both.first.request("GET", "/v1/pets").json() == []
        assert len(both.second.request("GET", "/v1/pets?limit=100").json()) == 50

    def test_a_key_of_one_is_told_where_it_works(self, both: Both) -> None:
        """401 with the other one's base address."""
        for here, there in ((both.first, both.second), (both.second, both.first)):
            answer = here.request("GET", "/v1/pets", key=there.key)
            assert (answer.status, answer.json()["code"]) == (401, "unauthorized")
            assert f"Use it at http://127.0.0.1:{there.port}/v1, or send" in answer.json()["message"]

    def test_nothing_that_is_made_at_one_is_seen_at_the_other(self, both: Both) -> None:
        """An animal, a category's name, an order, a webhook, a contact: no GET of the interface shows them
        elsewhere. A webhook of staging gets staging's events alone."""
        with receiving() as of_production, receiving() as of_staging:
            both.second.client().webhooks.create(of_staging.address, types=["pet.created"])
            shop = both.first.client()
            shop.webhooks.create(of_production.address, types=["pet.created"], description=_MARK)
            pet = shop.pets.create(name=_MARK, category_id=1)
            shop.orders.place(pet.id, reference=_MARK)
            in_store(f"sqlite:///{both.first.database}", self.mark)
            added = both.second.client().pets.create(name="of staging", category_id=1)
            wait_for(lambda: bool(of_production.got and of_staging.got), "an event of each")
        for receiver, name in ((of_production, _MARK), (of_staging, "of staging")):
            assert {json.loads(body)["data"]["name"] for _, body in receiver.got} == {name}
        seen = [self.walk(each) for each in (both.first, both.second)]
        assert len(seen[0]) == len([row for row in table() if row.method == "GET"])
        assert {name for name, body in seen[0].items() if _MARK in body} >= {
            "listPets", "getPet", "listCategories", "listOrders", "listEvents", "listWebhooks", "getWebhook",
        }  # fmt: skip
        assert {name for name, body in seen[1].items() if _MARK in body} == set()
        assert added.id == 51
        staging = both.second.settings["database_url"]
        assert in_store(staging, lambda store: store.contacts.of("account", 1)) == []

    async def mark(self, store: Store) -> None:
        """Mark the store's content as commands do."""
        await store.categories.name(1, _MARK, ACTOR)
        await store.contacts.add("account", "local", "a@b.example", ACTOR)

    def walk(self, service: Server) -> dict[str, str]:
        """The answer of each GET, about the first of its kind. Staging's events from before its filling are
        gone."""
        answers = {}
        for row in table():
            if row.method == "GET":
                answer = service.request("GET", re.sub(r"\{\w+\}", "1", row.path or ""))
                assert answer.status == 200 or row.name == "listEvents", row.name
                answers[row.name] = answer.body.decode()
        return answers

    def test_ctrl_c_stops_both(self, both: Both) -> None:
        """The last of this class. In order, with production's exit code."""
        assert both.stopped(signal.SIGINT) == 0
        assert both.said.count("Stopped.") == 2
        assert all(is_free(service.port) for service in (both.first, both.second))


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.xdist_group("e2e-stages")
class TestOne:
    """What becomes of one when the other can't go on."""

    def test_staging_that_can_not_start(self, tmp_path: Path) -> None:
        """Staging's port is taken: the reason is a line, and production goes on until SIGTERM."""
        with serving(tmp_path) as both, socket.create_server(("127.0.0.1", both.second.port)):
            both.wait_until(lambda: "production goes on without it.\n" in both.said)
            assert f"Can't listen on 127.0.0.1:{both.second.port}: Address already in use" in both.said
            assert both.first.is_ready()
            assert both.stopped(signal.SIGTERM) == 0

    def test_production_that_ends(self, tmp_path: Path) -> None:
        """Staging is stopped in order, and the exit code is production's."""
        with serving(tmp_path) as both:
            both.wait_until(both.second.is_ready)
            (first,) = [
                pid
                for pid in children(both.pid)
                if b"=production\0" in Path(f"/proc/{pid}/environ").read_bytes()
            ]
            os.kill(first, signal.SIGKILL)
            assert both.process.wait(20) == 128 + signal.SIGKILL
            assert "staging: Stopped." in both.said
            assert is_free(both.second.port)


@pytest.mark.parametrize(
    "given",
    [
        {"PETSTORE_STAGE": ""}, {"PETSTORE_STAGE": "staging"}, {"PETSTORE_CONFIG": "petstore.toml"},
        {"PETSTORE_DATABASE_URL": "postgresql://db/petstore"}, {"PETSTORE_VALKEY_URL": "valkey://v"},
        {"PETSTORE_HOST": "0.0.0.0"}, {"PETSTORE_PORT": "65535"}, {"PETSTORE_PORT": "x"},
    ],
)  # fmt: skip
def test_what_a_developer_has_chosen_is_served_alone(given: dict[str, str]) -> None:
    """The settings that a developer has chosen are served alone, as before, by `petstore serve` itself."""
    assert environments(given) is None


def test_what_each_gets() -> None:
    """The next port, a file beside production's, the other's address, and all that was set."""
    given = {
        "PETSTORE_PORT": "9000",
        "PETSTORE_DATABASE_URL": "sqlite:////srv/shop.db",
        "PETSTORE_DRAIN": "0s",
    }
    found: Any = environments(given)
    assert found == (
        given | {"PETSTORE_STAGE": "production", "PETSTORE_STAGING_BASE_URL": "http://127.0.0.1:9001/v1"},
        given
        | {
            "PETSTORE_STAGE": "staging",
            "PETSTORE_PORT": "9001",
            "PETSTORE_DATABASE_URL": "sqlite:////srv/shop-staging.db",
            "PETSTORE_PRODUCTION_BASE_URL": "http://127.0.0.1:9000/v1",
        },
    )
