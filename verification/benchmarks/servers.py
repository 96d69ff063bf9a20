"""Real server processes on loopback, pinned to their core, ended by their own id."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tools.servers.child import Child, family, status_of
from tools.servers.petstore import PROGRAM, environment
from tools.servers.ports import free_port
from verification.benchmarks.machine import ROOT, cores

_STOP_SECONDS = 15.0


class Server(msgspec.Struct):
    """A running server; `started_seconds` from its start to its first answer."""

    name: str
    port: int
    pid: int
    started_seconds: float

    def pss_mib(self) -> float:
        """Resident memory of the process and its children, in MiB; what they share counts once."""
        rollups = (Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii") for pid in family(self.pid))
        return sum(int(rollup.partition("\nPss:")[2].split()[0]) for rollup in rollups) / 2**10

    def cpu_seconds(self) -> float:
        """Processor time used so far by the process and its children."""
        return sum(time.clock_gettime(~pid << 3 | 2) for pid in family(self.pid))  # clock_getcpuclockid(3)


@contextmanager
def running(
    name: str,
    command: Sequence[str | Path],
    port: int,
    folder: Path,
    settings: Mapping[str, str] | None = None,
    variables: Mapping[str, str] | None = None,
    on: set[int] | None = None,
) -> Iterator[Server]:
    """Start a server on its core, or on those of `on`, wait for its first answer, end it with SIGTERM.

    `settings` are petstore's, by their names in lower case; `variables` are of the environment besides.
    """
    child = Child(name, command, folder / f"{name}.log", cores=on or cores()[0], cwd=folder)
    child.start(environment(settings or {}) | dict(variables or {}))
    try:
        child.wait_until(lambda: status_of(port, "/") != 0)
        yield Server(name, port, child.pid, time.monotonic() - child.began)
    finally:
        child.stop(signal.SIGTERM, _STOP_SECONDS)


@contextmanager
def petstore(
    name: str,
    database: Path,
    *,
    access_log: bool = False,
    settings: Mapping[str, str] | None = None,
    on: set[int] | None = None,
    program: Path = PROGRAM,
) -> Iterator[Server]:
    """This project's server as an operator starts it, on a database that exists.

    `program` is the `petstore` of this or another environment.
    """
    port = free_port()
    given = {
        "database_url": f"sqlite:///{database}",
        "port": str(port),
        "access_log": "on" if access_log else "off",
        "address_per_minute": "1000000000",
        "drain": "0s",
        **(settings or {}),
    }
    with running(name, [program, "serve"], port, database.parent, given, on=on) as server:
        yield server


@contextmanager
def ceiling(folder: Path, body_bytes: int, *more: str) -> Iterator[Server]:
    """The plaintext application on the same server, with a body of the same size. `more`: see ceiling.py."""
    port = free_port()
    command = [sys.executable, "-m", "verification.benchmarks.ceiling", str(port), str(body_bytes), *more]
    path = {"PYTHONPATH": str(ROOT)}
    with running("-".join(["ceiling", *more]), command, port, folder, variables=path) as server:
        yield server
