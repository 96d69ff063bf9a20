"""Real server processes on loopback, pinned to their core, ended by their own id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks.machine import cores

START_SECONDS = 60.0


class Server(msgspec.Struct):
    """A running server; `started_seconds` from its start to its first answer."""

    name: str
    port: int
    pid: int
    started_seconds: float

    def rss_mib(self) -> float:
        """Resident memory of the process and its children, in MiB."""
        pages = 0
        for pid in self.family():
            pages += int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def cpu_seconds(self) -> float:
        """Processor time used so far by the process and its children."""
        ticks = 0
        for pid in self.family():
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def family(self) -> list[int]:
        """The process and its descendants."""
        found = [self.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += map(int, (task / "children").read_text(encoding="ascii").split())
        return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")
            return connection.recv(12).startswith(b"HTTP/1.1")
    except OSError:
        return False


@contextmanager
def running(
    name: str,
    command: list[str],
    port: int,
    folder: Path,
    environment: dict[str, str] | None = None,
    on: set[int] | None = None,
) -> Iterator[Server]:
    """Start a server on its core, or on those of `on`, wait for its first answer, end it with SIGTERM."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PETSTORE_")}
    server_cores = on or cores()[0]
    began = time.perf_counter()
    log = (folder / f"{name}.log").open("wb")
    process = subprocess.Popen(
        command,
        env=inherited | (environment or {}),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        preexec_fn=lambda: os.sched_setaffinity(0, server_cores),  # noqa: PLW1509  before any thread starts
        start_new_session=True,
    )
    try:
        while not _answers(port):
            if process.poll() is not None or time.perf_counter() - began > START_SECONDS:
                text = (folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"{name} did not start: {text[-2000:]}")
            time.sleep(0.005)
        yield Server(name, port, process.pid, time.perf_counter() - began)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(5)
        log.close()


@contextmanager
def petstore(
    name: str,
    database: Path,
    *,
    access_log: bool = False,
    environment: dict[str, str] | None = None,
    on: set[int] | None = None,
    program: Path | None = None,
) -> Iterator[Server]:
    """This project's server as an operator starts it, on a database that exists.

    `program` is the `petstore` of another environment.
    """
    import sys

    port = free_port()
    settings = {
        "PETSTORE_DATABASE_URL": f"sqlite:///{database}",
        "PETSTORE_PORT": str(port),
        "PETSTORE_ACCESS_LOG": "on" if access_log else "off",
        "PETSTORE_ADDRESS_PER_MINUTE": "1000000000",
        "PETSTORE_DRAIN": "0s",
    }
    command = [str(program or Path(sys.executable).parent / "petstore"), "serve"]
    with running(name, command, port, database.parent, settings | (environment or {}), on) as server:
        yield server


@contextmanager
def ceiling(folder: Path, body_bytes: int, *more: str) -> Iterator[Server]:
    """The plaintext application on the same server, with a body of the same size. `more`: see ceiling.py."""
    import sys

    port = free_port()
    command = [sys.executable, "-m", "benchmarks.ceiling", str(port), str(body_bytes), *more]
    root = str(Path(__file__).resolve().parent.parent)
    with running("-".join(["ceiling", *more]), command, port, folder, {"PYTHONPATH": root}) as server:
        yield server
