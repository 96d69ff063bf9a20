"""A server that is killed under load and started again on the same file, and what clients may rely on."""

from __future__ import annotations

import http.client
import random
import threading
from functools import partial
from pathlib import Path

from tests.support.backends import execute_in_file
from tests.support.cluster import Client, walk
from tests.support.journal import history_faults
from tests.support.loops import working
from tests.support.report import Report, lost
from tests.support.server import Server, issue_key, start_server
from tests.support.waiting import pause, wait_for

_CLIENTS = 3


class Log:
    """What the clients sent and what they were told, kept outside of the server. No two send one name."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.acknowledged: dict[str, int] = {}
        self.unanswered: set[str] = set()
        self.odd: list[object] = []

    def add(self, client: Client, name: str) -> bool:
        """One addition with an Idempotency-Key of its own; False when the server died over it."""
        self.sent.add(name)
        try:
            answer = client.add(name, idempotency_key=name)
        except (OSError, http.client.HTTPException):
            self.unanswered.add(name)
            return False
        document = answer.json()
        if answer.status == 201 and document["name"] == name:
            self.acknowledged[name] = int(document["id"])
            self.unanswered.discard(name)
        else:
            self.odd.append(document)
        return True

    def wait_for_more(self, additions: int) -> None:
        """Wait until so many more are acknowledged."""
        goal = len(self.acknowledged) + additions
        wait_for(lambda: len(self.acknowledged) >= goal, "additions")

    def faults(self, pets: list[dict[str, object]]) -> list[str]:
        """What is not there as it was told, and what is there more than once or was never sent."""
        faults = [f"answered with {document}" for document in self.odd]
        faults += lost(self.acknowledged, [(pet["name"], pet["id"]) for pet in pets])
        if unknown := {str(pet["name"]) for pet in pets} - self.sent:
            faults.append(f"never sent: {sorted(unknown)[:5]}")
        if len(set(self.acknowledged.values())) != len(self.acknowledged):
            faults.append("two animals were told one identifier")
        return faults


def _add_until_killed(server: Server, key: str, prefix: str, log: Log, over: threading.Event) -> None:
    """Adds animals without a pause until the server is gone."""
    client, number = Client(server.port, key), 0
    while not over.is_set() and log.add(client, f"{prefix}-{number}"):
        number += 1


def play(folder: Path, report: Report, seed: int, kills: int) -> None:
    """Kill a server `kills` times at random moments under load. Some clients without an answer ask again."""
    chance, log, database = random.Random(seed), Log(), folder / "petstore.db"
    key = issue_key(database)
    server = start_server(folder, access_log="off")
    try:
        for kill in range(kills):
            names = [f"{kill}-{number}" for number in range(_CLIENTS)]
            with working(*(partial(_add_until_killed, server, key, name, log) for name in names)):
                log.wait_for_more(chance.randint(5, 60))
                pause(chance.uniform(0, 0.01))
                server.kill()
            server = start_server(folder, access_log="off")
            client = Client(server.port, key)
            for name in sorted(log.unanswered):
                if chance.random() < 0.5 and not log.add(client, name):
                    report.fault(f"{name} got no answer from a server that was not killed")
            client.close()
        pets = walk([Client(server.port, key)])
        if code := server.terminate():
            report.fault(f"the last server ended with {code}")
    finally:
        server.kill()
    report.counts["kills"] += kills
    report.counts["acknowledged"] += len(log.acknowledged)
    for fault in [*log.faults(pets), *_file_faults(database)]:
        report.fault(fault)


def _file_faults(database: Path) -> list[str]:
    """What is wrong with the file itself, and with the journal in it."""
    faults = [row[0] for row in execute_in_file(database, "PRAGMA integrity_check") if row[0] != "ok"]
    return faults + history_faults(lambda sql: execute_in_file(database, sql))
