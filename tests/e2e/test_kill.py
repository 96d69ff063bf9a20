"""SIGKILL at any moment: nothing acknowledged is lost, no identifier is used again (I1, I3, I6),
and the journal has each animal once (I22)."""

from __future__ import annotations

import http.client
import random
import threading
from pathlib import Path

import apsw
import pytest

from tests.support.cluster import Client, walk
from tests.support.journal import history_faults
from tests.support.server import Server, issue_key, running_server, start_server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-kill")]

KILLS = 20
CLIENTS = 3


class Log:
    """What the clients sent and what they were told, kept outside of the server."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.acknowledged: dict[str, int] = {}
        self.unanswered: set[str] = set()
        self.odd: list[object] = []
        self._changed = threading.Condition()

    def send(self, name: str) -> None:
        with self._changed:
            self.sent.add(name)

    def answer(self, name: str, status: int, document: dict[str, object]) -> None:
        with self._changed:
            if status == 201 and document["name"] == name:
                self.acknowledged[name] = int(str(document["id"]))
                self.unanswered.discard(name)
            else:
                self.odd.append(document)
            self._changed.notify_all()

    def lose(self, name: str) -> None:
        with self._changed:
            self.unanswered.add(name)
            self._changed.notify_all()

    def wait_for(self, acknowledged: int) -> None:
        """Until so many are acknowledged."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.acknowledged) >= acknowledged, 20)


def add(client: Client, name: str, log: Log) -> bool:
    """One addition with an Idempotency-Key of its own; False when the server died over it."""
    log.send(name)
    try:
        answer = client.add(name, idempotency_key=name)
    except (OSError, http.client.HTTPException):
        log.lose(name)
        return False
    log.answer(name, answer.status, answer.json())
    return True


def start_client(server: Server, key: str, prefix: str, log: Log) -> threading.Thread:
    """Adds animals without a pause until the server is gone."""

    def run() -> None:
        client, number = Client(server.port, key), 0
        while add(client, f"{prefix}-{number}", log):
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_every_acknowledged_animal_is_there_after_twenty_kills(tmp_path: Path) -> None:
    """Killed at random moments under load and started again on the same file: what was answered is there
    under its identifier; what was not is there once or not at all, and a retry with its Idempotency-Key
    makes it exactly one."""
    key = issue_key(tmp_path / "petstore.db")
    rng = random.Random(20_301_205)
    log = Log()
    server = start_server(tmp_path, access_log="off")
    try:
        for kill in range(KILLS):
            clients = [start_client(server, key, f"{kill}-{number}", log) for number in range(CLIENTS)]
            log.wait_for(len(log.acknowledged) + rng.randint(5, 60))
            threading.Event().wait(rng.uniform(0, 0.01))
            server.kill()
            for one in clients:
                one.join()
            server = start_server(tmp_path, access_log="off")
            client = Client(server.port, key)
            for name in sorted(log.unanswered):
                if rng.random() < 0.5:  # some clients never come back
                    assert add(client, name, log)
            client.close()
        pets = walk([Client(server.port, key)])
        assert server.terminate() == 0
    finally:
        server.kill()
    found = {pet["name"]: pet["id"] for pet in pets}
    assert len(found) == len(pets)
    assert log.odd == []
    assert {name: found.get(name) for name in log.acknowledged} == log.acknowledged
    assert set(found) <= log.sent
    assert len(set(log.acknowledged.values())) == len(log.acknowledged) >= KILLS * 5
    database = apsw.Connection(str(tmp_path / "petstore.db"))
    assert database.execute("PRAGMA integrity_check").get == "ok"
    assert history_faults(lambda sql: list(database.execute(sql))) == []
    database.close()


def test_a_kill_costs_at_most_a_second_of_counts(tmp_path: Path) -> None:
    """What was counted more than a second before it stays counted; what came after may be forgotten."""
    key = issue_key(tmp_path / "petstore.db", per_minute=1_000, per_day=1_000)

    def written() -> int:
        connection = apsw.Connection(str(tmp_path / "petstore.db"))
        used = connection.execute("SELECT day_used FROM account_windows").get
        connection.close()
        return int(used or 0)

    server = start_server(tmp_path)
    try:
        for _ in range(30):
            server.request("GET", "/v1/pets", key=key)
        wait_for(lambda: written() == 30, "the counter store")
        for _ in range(5):
            server.request("GET", "/v1/pets", key=key)
        server.kill()
    finally:
        server.kill()
    with running_server(tmp_path) as again:
        answer = again.request("GET", "/v1/pets", key=key)
        day = answer.headers["ratelimit"].partition('"day";r=')[2].partition(";")[0]
        assert 1_000 - 36 <= int(day) <= 1_000 - 31
