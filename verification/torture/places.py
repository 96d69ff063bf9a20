"""The service of a campaign stands on a file, or as two replicas on PostgreSQL with Valkey; and what may
happen to it there.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.support.backends import execute_at
from tests.support.postgres import PostgresServer
from tests.support.programs import Copy
from tests.support.report import Report
from tests.support.server import Server
from tests.support.valkey import ValkeyServer
from tests.support.waiting import pause
from tools.servers import Unusable
from tools.servers.child import background, family
from tools.servers.petstore import PROGRAM, run

Row = tuple[object, ...]


class Place:
    """`replicas` of the service on one database."""

    def __init__(self, folder: Path, url: str, replicas: int = 1, **settings: Any) -> None:
        self.folder = folder
        self.url = url
        given: dict[str, Any] = {"database_url": url, "access_log": "off", "console": "on", **settings}
        self.replicas = [
            Server(folder, log=folder / f"replica-{number}.log", **given) for number in range(replicas)
        ]
        self.troubles: dict[str, Callable[[random.Random], None]] = {
            "worker": self._kill_worker,
            "service": self._kill_service,
            "parent": self._kill_parent,
            "background": self._kill_background,
            "reload": lambda chance: self.one(chance).process.send_signal(signal.SIGHUP),
            "stop": self._stop,
        }

    @property
    def ports(self) -> list[int]:
        return [replica.port for replica in self.replicas]

    def start(self) -> None:
        for replica in self.replicas:
            start(replica)

    def kill(self) -> None:
        for replica in self.replicas:
            if replica.child.began:
                replica.kill()

    def command(self, *words: str | Path, program: Path = PROGRAM) -> str:
        """What a command prints. Raises RuntimeError."""
        done = run(*words, settings={"database_url": self.url}, program=program, cwd=self.folder)
        if done.returncode:
            raise RuntimeError(f"petstore {words}: {done.stderr.strip()}")
        return done.stdout

    def rows(self, sql: str) -> list[Row]:
        """What an outside program reads."""
        return execute_at(self.url, sql)

    def trouble(self, kind: str, chance: random.Random) -> None:
        """Let it happen."""
        self.troubles[kind](chance)

    def tend(self) -> None:
        """Start again what has ended by itself: a worker's second death within seconds ends a service."""
        for replica in self.replicas:
            if replica.child.ended() is not None:
                start(replica)

    def troubles_now_and_then(
        self, kinds: Sequence[str], every_seconds: float, chance: random.Random, counts: Counter[str]
    ) -> Iterator[None]:
        """Half a second each; in it one of the kinds when so long has passed, which is counted."""
        happened_at = float("-inf")
        while True:
            pause(0.5)
            self.tend()
            if time.monotonic() - happened_at >= every_seconds:
                kind = chance.choice(kinds)
                self.trouble(kind, chance)
                counts[f"times {kind}"] += 1
                happened_at = time.monotonic()
            yield

    def one(self, chance: random.Random) -> Server:
        return chance.choice(self.replicas)

    def _kill_worker(self, chance: random.Random) -> None:
        for pid in self.one(chance).workers()[:1]:
            _kill(pid)

    def _kill_background(self, chance: random.Random) -> None:
        for pid in background(self.one(chance).pid):
            _kill(pid)

    def _kill_service(self, chance: random.Random) -> None:
        replica = self.one(chance)
        replica.kill()
        start(replica)

    def _kill_parent(self, chance: random.Random) -> None:
        """Kill the parent; its children end by themselves."""
        replica = self.one(chance)
        replica.process.kill()
        replica.process.wait()
        start(replica)

    def _stop(self, chance: random.Random) -> None:
        replica = self.one(chance)
        replica.terminate()
        start(replica)


class Cluster(Place):
    """Two replicas of two workers. It is rolled between this program and `other`, one replica at a time."""

    def __init__(self, folder: Path, postgres: PostgresServer, valkey: ValkeyServer, other: Path) -> None:
        super().__init__(folder, postgres.url(), 2, valkey_url=valkey.url, workers="2")
        self.postgres = postgres
        self._other = other
        self.troubles |= {
            "PostgreSQL": self._kill_postgres,
            "crash": lambda chance: self._restart_postgres(signal.SIGQUIT),
            "roll": self._roll,
        }

    def _kill_postgres(self, _: random.Random) -> None:
        """Every process of it at once."""
        for pid in list(family(self.postgres.child.pid)):
            _kill(pid)
        self._restart_postgres(signal.SIGKILL)

    def _restart_postgres(self, how: signal.Signals) -> None:
        self.postgres.stop(how)
        pause(0.1)
        self.postgres.start()

    def _roll(self, chance: random.Random) -> None:
        replica = self.one(chance)
        self.replace(replica, PROGRAM if replica.program == self._other else self._other)

    def replace(self, replica: Server, program: Path) -> None:
        """Start that program in its place; it may have to migrate the database first."""
        self.command("db", "migrate", program=program)
        replica.terminate()
        replica.program = program
        start(replica)


def changed_program(folder: Path, *lines: str) -> Path:
    """The program as it is after these lines of Python."""
    program = folder / "changed"
    program.write_text(
        "\n".join((f"#!{sys.executable}", *lines, "from petstore.cli import main", "main()", ""))
    )
    program.chmod(0o755)
    return program


def start(replica: Server) -> None:
    """Start until it serves; again where what is left of the one before still holds the database."""
    for attempt in range(5):
        try:
            replica.start()
            return
        except Unusable:
            replica.kill()
            if attempt == 4:
                raise
            pause(1)


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def places(report: Report, seed: int, seconds: float) -> Iterator[tuple[int, Place]]:
    """A place for each round: one of two is a file, the other has two replicas."""
    for number, folder in report.rounds_in_folders(seed, seconds):
        with (on_a_file if number % 2 else on_postgres)(folder) as place:
            yield number, place


@contextmanager
def on_a_file(folder: Path) -> Iterator[Place]:
    """One service on a SQLite file in this folder, not yet started."""
    place = Place(folder, f"sqlite:///{folder}/petstore.db")
    try:
        yield place
    finally:
        place.kill()


@contextmanager
def on_postgres(folder: Path, older: Path | None = None) -> Iterator[Cluster]:
    """A cluster, not yet started. The other program is `older`, which began the database, or one that is one
    step ahead."""
    with ExitStack() as made:
        postgres = made.enter_context(PostgresServer("max_connections=200", on_disk=True)).start()
        valkey = made.enter_context(ValkeyServer()).start()
        if older is None:
            (folder / "later").mkdir()
            later = Copy(folder / "later")
            later.add_step()
        place = Cluster(folder, postgres, valkey, older or later.program)
        made.callback(place.kill)
        if older is not None:
            place.command("db", "migrate", program=older)
            place.command("db", "migrate")  # an upgrade begins so; one replica is new by then
            for replica in place.replicas[1:]:
                replica.program = older
        yield place
