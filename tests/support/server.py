"""The real `petstore serve` as a process of its own, on a free port and a database of its own.

Its output goes to a file. It is started in a session of its own, so that a kill reaches its worker too.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from petstore.core.clock import SystemClock
from petstore.core.keys import KEY_PATTERN
from petstore.core.limits.plans import resolve_plan
from petstore.storage.backend import backend_for

PROGRAM = Path(sys.executable).with_name("petstore")
_START_SECONDS = 30.0
_STOP_SECONDS = 20.0
_POLL_SECONDS = 0.02
_ATTEMPTS = 3


def free_port() -> int:
    """A port of the loopback address that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without its own PETSTORE_* variables, and with these settings.

    Settings are given by their name in lower case, as text.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PETSTORE_")}
    return kept | {f"PETSTORE_{name.upper()}": text for name, text in settings.items()}


class Response:
    """One answer over the socket: names of headers in lower case."""

    def __init__(self, answer: http.client.HTTPResponse, body: bytes) -> None:
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """A started server. `key` is the key that a first start printed, else empty."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, database: Path, log_file: Path) -> None:
        self.process = process
        self.port = port
        self.database = database
        self.log_file = log_file
        self.base_url = f"http://127.0.0.1:{port}"
        self.key = ""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        """Everything that it has printed so far, standard error and output."""
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def workers(self) -> list[int]:
        """Processes that this one has started and that are alive (Linux)."""
        found = []
        for children in Path(f"/proc/{self.pid}/task").glob("*/children"):
            found += [int(pid) for pid in children.read_text().split()]
        return found

    def request(
        self,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        key: str | None = None,
        timeout: float = 20.0,
    ) -> Response:
        """One request on a connection of its own, with the server's key (`key=""`: without one)."""
        key = self.key if key is None else key
        sent = ({"Authorization": f"Bearer {key}"} if key else {}) | dict(headers or {})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, target, body, sent)
            answer = connection.getresponse()
            return Response(answer, answer.read())
        finally:
            connection.close()

    def post(self, document: object, **more: Any) -> Response:
        """POST /v1/pets with a JSON document."""
        headers = {"Content-Type": "application/json"} | dict(more.pop("headers", {}))
        return self.request("POST", "/v1/pets", body=json.dumps(document).encode(), headers=headers, **more)

    def terminate(self) -> int:
        """SIGTERM, as an operator stops it; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL to the server and its worker at once, as when the machine dies."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait(_STOP_SECONDS)

    def wait_until_ready(self) -> None:
        """Until /healthz answers. Raises AssertionError with the log when the process ends before that."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode} before it served:\n{self.log}")
            try:
                if self.request("GET", "/healthz", key="", timeout=2).status == 200:
                    return
            except OSError:
                time.sleep(_POLL_SECONDS)
        raise AssertionError(f"does not answer after {_START_SECONDS:g} s:\n{self.log}")


def issue_key(
    database: Path | str, name: str = "large", *, per_minute: int = 10**6, per_day: int = 10**7
) -> str:
    """A key of a new Enterprise account, made beside the server as an operator would; creates the file.

    A database that is no file is given by its URL.
    """
    url = database if isinstance(database, str) else f"sqlite:///{database}"

    async def issue() -> str:
        store = backend_for(url).open(SystemClock())
        try:
            await store.keys.add_account(name, resolve_plan("enterprise", per_minute, per_day))
            return (await store.keys.issue(name, "test")).secret
        finally:
            await store.close()

    return asyncio.run(issue())


def start_server(
    folder: Path,
    *,
    port: int | None = None,
    inherited: Collection[int] = (),
    program: Path = PROGRAM,
    prefix: Sequence[str] = (),
    **settings: str | None,
) -> Server:
    """Start a server on `folder`/petstore.db and wait until it answers; end it with `terminate` or `kill`.

    A setting that is None is not set; `inherited` are descriptors that it gets besides, `prefix` is a command
    that runs it. Without `port` it is a free one, and another one when somebody was quicker to take it.
    """
    database = folder / "petstore.db"
    for attempt in range(_ATTEMPTS):
        chosen = port or free_port()
        given: dict[str, str | None] = {
            "database_url": f"sqlite:///{database}",
            "host": "127.0.0.1",
            "port": str(chosen),
            "drain": "0s",
            **settings,
        }
        number = len(list(folder.glob("server-*.log")))
        log_file = folder / f"server-{number}.log"
        with log_file.open("wb") as output:
            process = subprocess.Popen(
                [*prefix, program, "serve"],
                cwd=folder,
                env=environment({name: text for name, text in given.items() if text is not None}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=inherited,
            )
        server = Server(process, chosen, database, log_file)
        try:
            server.wait_until_ready()
        except AssertionError:
            server.kill()
            if port is None and "Can't listen" in server.log and attempt + 1 < _ATTEMPTS:
                continue
            raise
        issued = KEY_PATTERN.search(server.log)
        server.key = issued[0] if issued else ""
        return server
    raise AssertionError("unreachable: the last attempt returns or raises")


@contextmanager
def running_server(
    folder: Path,
    *,
    port: int | None = None,
    inherited: Collection[int] = (),
    program: Path = PROGRAM,
    prefix: Sequence[str] = (),
    **settings: str | None,
) -> Iterator[Server]:
    """A server for the length of a block, stopped with SIGTERM and, should that fail, killed."""
    server = start_server(folder, port=port, inherited=inherited, program=program, prefix=prefix, **settings)
    try:
        yield server
    finally:
        try:
            server.terminate()
        finally:
            server.kill()
