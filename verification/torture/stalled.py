"""Clients that hold connections: they do not read, read a little, or send half a request while others add
animals; in the middle comes a SIGHUP, a SIGTERM or the end of the parent. Nothing hangs, and nothing that was
acknowledged is lost.
"""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from functools import partial
from pathlib import Path

from tests.support.backends import execute_in_file
from tests.support.loops import working
from tests.support.report import Report, lost
from tests.support.server import Server, issue_key, start_server
from tests.support.stalled import DOCUMENT, StalledClient, held_connections
from tests.support.waiting import pause, wait_for

_CLIENTS_MAX = 40
_WRITERS = 2
_PAUSE_MAX_SECONDS = 6.0  # of the service, a replaced worker or a new start among it
_STOP_MAX_SECONDS = 8.0  # with a deadline for bodies of a second
_ANSWER_MAX_SECONDS = 4.0  # twice the longest deadline for answers, from when a worker serves
_HALF_HEAD = b"GET /v1/pets HTTP/1.1\r\nHost: lo"
_HALF_BODY = (
    b"POST /v1/pets HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
    b'Content-Type: application/json\r\nContent-Length: 30\r\n\r\n{"name":'
)
_WAYS = ("nothing", "hangup", "stop", "orphan")


class Adders:
    """Clients that read their answers: each adds animals, one after another, and notes what it was told."""

    def __init__(self, server: Server) -> None:
        self.acknowledged: dict[str, int] = {}
        self.longest_pause = 0.0
        self._server = server  # another one takes its port and its database

    def at_work(self) -> contextlib.AbstractContextManager[None]:
        """Stall for the length of a block."""
        return working(*(partial(self._add, number) for number in range(_WRITERS)))

    def _add(self, number: int, over: threading.Event) -> None:
        count, last = 0, time.monotonic()
        while not over.is_set():
            name = f"{number}-{count}"
            with contextlib.suppress(OSError, ValueError):
                answer = self._server.post(
                    {"name": name, "categoryId": 1}, headers={"Idempotency-Key": name}, timeout=2
                )
                if answer.status == 201:
                    self.acknowledged[name] = answer.json()["id"]
                    now = time.monotonic()
                    self.longest_pause, last = max(self.longest_pause, now - last), now
                    count += 1
            pause(0.005)
        self.longest_pause = max(self.longest_pause, time.monotonic() - last)


def hold(port: int, key: str, chance: random.Random) -> tuple[list[StalledClient], list[StalledClient]]:
    """Some clients of every kind, and of them those that have asked for much and are never to read."""
    clients, deaf = [], []
    for _ in range(chance.randrange(3, _CLIENTS_MAX)):
        kind = chance.randrange(5)
        client = StalledClient(port, ("/docs/guide", DOCUMENT)[kind % 2], requests=20 if kind < 2 else 0)
        if kind == 2:
            client.socket.sendall(_HALF_HEAD)
        elif kind == 3:
            client.socket.sendall(_HALF_BODY % key.encode())
        clients.append(client)
        deaf += [client] if kind < 2 and chance.random() < 0.5 else []
    return clients, deaf


def sip(clients: list[StalledClient], chance: random.Random, seconds: float) -> None:
    """Time passes; now and then one of them takes a little."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        client = chance.choice(clients) if clients else None
        if client is not None and client.is_answered():
            with contextlib.suppress(OSError):
                client.take(chance.randrange(1, 5_000))
        pause(0.05)


def disturb(server: Server, folder: Path, way: str, settings: dict[str, str]) -> tuple[Server, list[str]]:
    """The event in the middle: the server afterwards, and what was wrong."""
    began = time.monotonic()
    faults = []
    if way == "hangup":
        server.process.send_signal(signal.SIGHUP)
    elif way in ("stop", "orphan"):
        if way == "stop":
            code = server.terminate()
            faults += [f"the stop ended with {code}"] if code not in (0, 3) else []
        else:
            server.process.kill()
            server.process.wait(5)
        server = start_server(folder, port=server.port, **settings)
        wait_for(lambda: bool(server.workers()), "the new worker")  # the first answer may be the orphan's
    if time.monotonic() - began > _STOP_MAX_SECONDS:
        faults.append(f"{way} took {time.monotonic() - began:.1f} s")
    return server, faults


def _play(report: Report, seed: int, folder: Path) -> None:
    """One server, with a disturbance in the middle."""
    chance = random.Random(seed)
    way = chance.choice(_WAYS)
    settings = {
        "answer_timeout": f"{chance.randrange(500, 2_000)}ms",
        "body_timeout": "1s",
        "drain": f"{chance.randrange(1, 300)}ms",
        "access_log": "off",
    }
    key = issue_key(folder / "petstore.db")
    server = start_server(folder, **settings)
    server.key = key
    adders = Adders(server)
    try:
        with adders.at_work():
            clients, _ = hold(server.port, key, chance)
            sip(clients, chance, chance.random() * 2)
            server, faults = disturb(server, folder, way, settings)
            newcomers, deaf = hold(server.port, key, chance)
            clients += newcomers
            readers = [client for client in clients if client not in deaf]
            ends = time.monotonic() + _PAUSE_MAX_SECONDS + _ANSWER_MAX_SECONDS
            sip(readers, chance, 2)  # until all are accepted
            while time.monotonic() < ends and _held(server, deaf):
                sip(readers, chance, 0.5)
            if left := _held(server, deaf):
                faults.append(f"{left} clients that read nothing are still there")
        code = server.terminate()
        faults += [f"the last stop ended with {code}"] if code not in (0, 3) else []
        for client in clients:
            client.close()
    finally:
        server.kill()
    faults += _lost(folder / "petstore.db", adders.acknowledged)
    if adders.longest_pause > _PAUSE_MAX_SECONDS:
        faults.append(f"nobody was served for {adders.longest_pause:.1f} s")
    report.counts["acknowledged"] += len(adders.acknowledged)
    report.took("a wait", adders.longest_pause)
    for fault in faults[:5]:
        report.fault(f"{way}: {fault}")


def _held(server: Server, clients: list[StalledClient]) -> int:
    """How many of them the server still has a connection with."""
    return len(held_connections(server.port) & {client.port for client in clients})


def _lost(database: Path, acknowledged: dict[str, int]) -> list[str]:
    """What was acknowledged and is not there, or is there twice; a log that was not moved into the file."""
    faults = [f"{database.name}-wal is left"] if database.with_name("petstore.db-wal").exists() else []
    return faults + lost(acknowledged, execute_in_file(database, "SELECT name, id FROM pets"))


def run(report: Report, seed: int, seconds: float) -> None:
    """One server and what comes in the middle for each seed."""
    for number, folder in report.rounds_in_folders(seed, seconds):
        _play(report, number, folder)
