"""The cluster: its parts started in order, tended, and ended in order. It has no terminal; __main__ has."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from petstore.core.keys import KEY_PATTERN
from tools.cluster import programs
from tools.cluster.parts import PETSTORE, Nginx, Postgres, Replica, Valkey, environment, is_free, wait_until
from tools.cluster.programs import Unusable

WORKERS = 2
_SHORT_LIFE_SECONDS = 5.0


class Ports(NamedTuple):
    """Where the parts listen, on the loopback address."""

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
        program: Path = PETSTORE,
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
            Replica(self.folder, number, port, self.settings, program)
            for number, port in enumerate(ports.replicas, start=1)
        ]
        program = programs.nginx(self.folder)
        self.nginx = Nginx(program, self.folder, ports.front, ports.replicas) if program else None

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
                wait_until(replica.is_ready, replica.child)
            if self.nginx:
                self.nginx.start()
            self._note()
        except BaseException:
            self.stop()
            raise
        return key

    def _check_ports(self) -> None:
        """Before anything runs. Raises Unusable for a port that another program has."""
        front = (self.ports.front,) if self.nginx else ()
        for port in (*front, *self.ports.replicas, self.ports.postgres, self.ports.valkey):
            if not is_free(port):
                raise Unusable(
                    f"Port {port} is in use. Stop what uses it, or name five others: ARGS='--port 9000'."
                )

    def petstore(self, *words: str) -> str:
        """What a command of the program prints, run beside the replicas as an operator does."""
        names = ("database_url_file", "valkey_url_file")
        done = subprocess.run(
            [self._program, *words],
            env=environment({name: self.settings[name] for name in names}),
            capture_output=True,
            text=True,
            check=False,
        )
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
            if code != 0 and time.monotonic() - replica.began < _SHORT_LIFE_SECONDS:
                raise Unusable(f"{replica.child.name} ended with {code} at once; see {replica.child.log}.")
            replica.launch()
            self._note()
            child = replica.child
            self._say(f"{child.name} ended with {code} and was started again as process {child.pid}.")

    def restart(self, replica: Replica) -> None:
        """Stop it in order, start it, wait until it is ready."""
        replica.stop()
        replica.launch()
        self._note()
        wait_until(replica.is_ready, replica.child)

    def _note(self) -> None:
        """Who runs, for other processes: see `restart` in __main__."""
        replicas = {replica.number: [replica.child.pid, replica.port] for replica in self.replicas}
        noted = self.folder / "running.json.new"
        noted.write_text(json.dumps({"pid": os.getpid(), "replicas": replicas}))
        noted.rename(self.folder / "running.json")

    def stop(self) -> None:
        """End every part, those first that use others."""
        (self.folder / "running.json").unlink(missing_ok=True)
        if self.nginx:
            self.nginx.stop()
        for replica in self.replicas:
            if replica.began and replica.child.ended() is None:
                os.kill(replica.child.pid, signal.SIGINT)  # nobody sends anything any more: no drain
        for replica in self.replicas:
            replica.stop()
        self.valkey.stop()
        self.postgres.stop()
