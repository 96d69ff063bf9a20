"""A server that is killed under load and started again on the same file, and what clients may rely on."""

from __future__ import annotations

import http.client
import random
import threading
from pathlib import Path

from tests.support.backends import execute_in_file
from tests.support.cluster import Client, walk
from tests.support.journal import history_faults
from tests.support.report import Report, lost
from tests.support.server import Server, issue_key, start_server
from tests.support.waiting import pause

_CLIENTS = 3


class Log:
    """What the clients sent and what they were told, kept outside of the server."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.acknowledged: dict[str, int] = {}
        self.unanswered: set[str] = set()
        self.odd: list[object] = []
        self._changed = threading.Condition()

    def add(self, client: Client, name: str) -> bool:
        """One addition with an Idempotency-Key of its own; False when the server died over it."""
        with self._changed:
            self.sent.add(name)
        try:
            answer = client.add(name, idempotency_key=name)
        except (OSError, http.client.HTTPException):
            with self._changed:
                self.unanswered.add(name)
            return False
        document = answer.json()
        with self._changed:
            if answer.status == 201 and document["name"] == name:
                self.acknowledged[name] = int(document["id"])
                self.unanswered.discard(name)
            else:
                self.odd.append(document)
            self._changed.notify_all()
        return True

    def wait_for_more(self, additions: int) -> None:
        """Until so many more are acknowledged."""
        with self._changed:
            goal = len(self.acknowledged) + additions
            assert self._changed.wait_for(lambda: len(self.acknowledged) >= goal, 20)

    def faults(self, pets: list[dict[str, object]]) -> list[str]:
        """What is not there as it was told, and what is there more than once or was never sent."""
        faults = [f"answered with {document}" for document in self.odd]
        faults += lost(self.acknowledged, [(pet["name"], pet["id"]) for pet in pets])
        if unknown := {str(pet["name"]) for pet in pets} - self.sent:
            faults.append(f"never sent: {sorted(unknown)[:5]}")
        if len(set(self.acknowledged.values())) != len(self.acknowledged):
            faults.append("two animals were told one identifier")
        return faults


def _start_client(server: Server, key: str, prefix: str, log: Log) -> threading.Thread:
    """Adds animals without a pause until the server is gone."""

    def run() -> None:
        client, number = Client(server.port, key), 0
        while log.add(client, f"{prefix}-{number}"):
            number += 1

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def play(folder: Path, report: Report, seed: int, kills: int) -> None:
    """So many kills at random moments under load. Some of the clients that got no answer ask again."""
    chance, log, database = random.Random(seed), Log(), folder / "petstore.db"
    key = issue_key(database)
    server = start_server(folder, access_log="off")
    try:
        for kill in range(kills):
            clients = [_start_client(server, key, f"{kill}-{number}", log) for number in range(_CLIENTS)]
            log.wait_for_more(chance.randint(5, 60))
            pause(chance.uniform(0, 0.01))
            server.kill()
            for one in clients:
                one.join()
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
