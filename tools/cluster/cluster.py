"""The cluster: its parts started in order, tended, and ended in order. It has no terminal; __main__ has."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from petstore.core.keys import KEY_PATTERN
from tools.cluster.parts import Postgres, Valkey
from tools.servers import Unusable, find
from tools.servers.nginx import Nginx
from tools.servers.petstore import PROGRAM, Petstore, run
from tools.servers.ports import is_free

WORKERS = 2
_SHORT_LIFE_SECONDS = 5.0


class Ports(NamedTuple):
    """The ports of the parts, on the loopback address."""

    front: int
    replicas: tuple[int, int]
    postgres: int
    valkey: int

    @classmethod
    def from_first(cls, first: int) -> Ports:
        return cls(first, (first + 1, first + 2), first + 3, first + 4)


class Cluster:
    """PostgreSQL, Valkey, two replicas of two workers and, where there is one, nginx; data in `folder`."""

    def __init__(
        self,
        folder: Path,
        ports: Ports,
        say: Callable[[str], None],
        settings: Mapping[str, str] | None = None,
        program: Path = PROGRAM,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder.resolve()
        self.ports = ports
        self._say = say
        self._program = program
        self.postgres = Postgres(self.folder, ports.postgres)
        self.valkey = Valkey(self.folder, ports.valkey)
        self.settings = {
            "database_url_file": str(self.postgres.url_file),
            "valkey_url_file": str(self.valkey.url_file),
            "workers": str(WORKERS),
            "replicas": str(len(ports.replicas)),
            "trusted_proxies": "127.0.0.1",
            "log_format": "json",
            **(settings or {}),
        }
        self.replicas = [
            Petstore(
                f"Replica {number}",
                port,
                self.settings,
                self.folder / f"replica-{number}.log",
                program=program,
            )
            for number, port in enumerate(ports.replicas, start=1)
        ]
        nginx = find.nginx(self.folder)
        self.nginx = Nginx(nginx, self.folder, ports.front, ports.replicas) if nginx else None

    def start(self) -> str:
        """Start every part; a key, when this is the first time. Raises Unusable, with everything stopped."""
        self._check_ports()
        for log in self.folder.glob("*.log"):
            log.unlink()
        try:
            self.postgres.start()
            self.valkey.start()
            self.petstore("db", "migrate")
            key = self._first_key()
            for replica in self.replicas:
                replica.launch()
            for replica in self.replicas:
                replica.child.wait_until(replica.is_ready)
            if self.nginx:
                self.nginx.start()
            self._note()
        except BaseException:
            self.stop()
            raise
        return key

    def _check_ports(self) -> None:
        """Check each port before anything runs. Raises Unusable for a port that another program has."""
        front = (self.ports.front,) if self.nginx else ()
        for port in (*front, *self.ports.replicas, self.ports.postgres, self.ports.valkey):
            if not is_free(port):
                raise Unusable(
                    f"Port {port} is in use. Stop what uses it, or name five others: ARGS='--port 9000'."
                )

    def petstore(self, *words: str) -> str:
        """What a command of the program prints, run beside the replicas as an operator does."""
        names = ("database_url_file", "valkey_url_file")
        done = run(*words, settings={name: self.settings[name] for name in names}, program=self._program)
        if done.returncode:
            raise Unusable(f"petstore {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def _first_key(self) -> str:
        if json.loads(self.petstore("accounts", "list", "--json")):
            return ""
        self.petstore("accounts", "add", "local", "--plan", "business")
        found = re.search(KEY_PATTERN, self.petstore("keys", "issue", "local", "--label", "cluster"))
        assert found is not None
        return found[0]

    def tend(self) -> None:
        """Start a replica that has ended anew, as a supervisor of machines does. Raises Unusable."""
        others = [self.postgres.child, self.valkey.child, *([self.nginx.child] if self.nginx else [])]
        for child in others:
            if child.ended() is not None:
                raise Unusable(f"{child.name} ended with {child.ended()}; its log is {child.log}.")
        for replica in self.replicas:
            code = replica.child.ended()
            if code is None:
                continue
            if code != 0 and time.monotonic() - replica.child.began < _SHORT_LIFE_SECONDS:
                raise Unusable(f"{replica.child.name} ended with {code} at once; see {replica.child.log}.")
            replica.launch()
            self._note()
            child = replica.child
            self._say(f"{child.name} ended with {code} and was started again as process {child.pid}.")

    def restart(self, replica: Petstore) -> None:
        """Stop it in order, start it, wait until it is ready."""
        replica.stop()
        replica.launch()
        self._note()
        replica.child.wait_until(replica.is_ready)

    def _note(self) -> None:
        """Who runs, for other processes: see `restart` in __main__."""
        replicas = {
            number: [replica.child.pid, replica.port] for number, replica in enumerate(self.replicas, start=1)
        }
        noted = self.folder / "running.json.new"
        noted.write_text(json.dumps({"pid": os.getpid(), "replicas": replicas}))
        noted.rename(self.folder / "running.json")

    def stop(self) -> None:
        """End every part, those first that use others."""
        (self.folder / "running.json").unlink(missing_ok=True)
        if self.nginx:
            self.nginx.stop()
        for replica in self.replicas:
            if replica.child.began and replica.child.ended() is None:
                os.kill(replica.child.pid, signal.SIGINT)  # SIGINT skips the drain: no client is left
        for replica in self.replicas:
            replica.stop()
        self.valkey.stop()
        self.postgres.stop()
