"""The real `petstore serve` as a process of its own, on a port and a database of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from petstore_client import Petstore as Client

from petstore.config import load
from petstore.core.keys import Access
from petstore.core.limits.plans import FREE, Plan, resolve_plan
from petstore.storage.store import Store
from petstore.wiring.administration import backend_of
from tests.support.backends import in_store
from tests.support.journal import ACTOR
from tools.servers.child import children, status_of, workers
from tools.servers.petstore import PROGRAM, Petstore, run
from tools.servers.ports import free_port

_STOP_SECONDS = 20.0


class Response:
    """One answer over the socket: names of headers in lower case."""

    def __init__(self, answer: http.client.HTTPResponse, body: bytes) -> None:
        self.status = answer.status
        self.headers = {name.lower(): value for name, value in answer.getheaders()}
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)


class Server(Petstore):
    """A server that works in a folder, on `petstore.db` there unless `database_url` names another database.

    Settings are text by their name in lower case; one that is None is not set. `how` is for subprocess.Popen,
    the other options are Petstore's. `key` is that of the account `local`, which a first start on a terminal
    would make, and which `start_server` makes in an empty database; else empty.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int | None = None,
        log: Path | None = None,
        program: Path = PROGRAM,
        prefix: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        how: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.folder = folder
        self.database = folder / "petstore.db"
        given = {"database_url": f"sqlite:///{self.database}", "drain": "0s", **settings}
        super().__init__(
            "petstore",
            port or free_port(),
            {name: text for name, text in given.items() if text is not None},
            log or folder / f"server-{len(list(folder.glob('server-*.log')))}.log",
            program=program,
            prefix=prefix,
            # To read all authorities takes each process 0.1 s. A directory of them is searched as before.
            variables={"SSL_CERT_FILE": os.devnull, **(variables or {})},
            cwd=folder,
            **(how or {}),
        )
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.key = ""

    @property
    def process(self) -> subprocess.Popen[bytes]:
        return self.child.process

    @property
    def pid(self) -> int:
        return self.child.pid

    @property
    def log(self) -> str:
        """Everything that it has printed so far, standard error and output."""
        return self.child.said

    def workers(self) -> list[int]:
        """The server's workers that are alive (Linux)."""
        return workers(self.pid)

    def children(self) -> list[int]:
        """The server's workers and its background process (Linux)."""
        return children(self.pid)

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

    def client(self, key: str | None = None) -> Client:
        """The Python client, with the server's key unless another one is given."""
        return Client(self.base_url, key or self.key)

    def terminate(self) -> int:
        """SIGTERM, as an operator stops it; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL to the server and its worker at once, as when the machine dies."""
        self.child.kill()

    def is_ready(self) -> bool:
        """Whether a worker answers, with or without its store."""
        return status_of(self.port, "/healthz") == 200

    def wait_until_ready(self) -> None:
        """Raises Unusable with the end of the log when it ends before that."""
        self.child.wait_until(self.is_ready)


def issue_key(
    database: Path | str,
    name: str = "large",
    *,
    per_minute: int = 10**6,
    per_day: int = 10**7,
    access: Access = Access.WRITE,
    plan: Plan | None = None,
) -> str:
    """A key of a new account, made beside the server as an operator would; creates the file.

    It is on Enterprise unless a plan is given. A database that is not a file is given by its URL.
    """
    url = database if isinstance(database, str) else f"sqlite:///{database}"

    async def issue(store: Store) -> str:
        await store.accounts.add(name, plan or resolve_plan("enterprise", per_minute, per_day), ACTOR)
        return (await store.keys.issue(name, "test", ACTOR, access=access)).secret

    return in_store(url, issue)


def start_server(folder: Path, **options: Any) -> Server:
    """Start a server and wait until it answers; `options` are Server's."""
    server = Server(folder, **options)
    try:
        server.start()
    except BaseException:
        server.kill()
        raise
    server.key = first_key(server)
    return server


def first_key(server: Server) -> str:
    """A key on the Free plan for the account `local`, as on a terminal; empty where there is an account.

    A server that began with one does not log that there is none, and is not asked.
    """
    if "No account yet" not in server.log or server.settings["host"] != "127.0.0.1":
        return ""
    mounts = f"/proc/{server.pid}/ns/mnt"
    if Path(mounts).readlink() != Path("/proc/self/ns/mnt").readlink():
        beside = ["nsenter", f"--mount={mounts}"]
        for words in (("accounts", "add", "local", "--plan", "free"), ("keys", "issue", "local")):
            said = run(*words, settings=server.settings, prefix=beside, cwd=server.folder).stdout
        return said.strip()

    settings = load({f"PETSTORE_{name.upper()}": text for name, text in server.settings.items()})

    async def issue_first(store: Store) -> str:
        if not await store.is_empty():
            return ""
        await store.accounts.add("local", FREE, ACTOR)
        return (await store.keys.issue("local", settings.key_environment, ACTOR)).secret

    return in_store(backend_of(settings), issue_first)


@contextmanager
def running_server(folder: Path, **options: Any) -> Iterator[Server]:
    """A server for the length of a block, stopped with SIGTERM and, should that fail, killed."""
    server = start_server(folder, **options)
    try:
        yield server
    finally:
        try:
            server.terminate()
        finally:
            server.kill()
