"""A server with its console on, over a large store."""

from __future__ import annotations

import http.client
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.console_places import People
from tests.support.postgres import PostgresServer
from tests.support.valkey import ValkeyServer
from verification.benchmarks import servers
from verification.benchmarks.console.data import Size, fill_postgres, fill_sqlite
from verification.benchmarks.data import copy_of


class Served(NamedTuple):
    """A server's port, its people, and the address of its database."""

    port: int
    people: People
    url: str


class Reader:
    """A person's browser without the drawing: a connection that is kept, and a cookie."""

    def __init__(self, port: int, people: People | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Accept": "text/html", "Accept-Encoding": "gzip"}
        if people:
            self._headers["Cookie"] = f"petstore-session={people.token}"

    def get(self, target: str, *, plain: bool = False) -> tuple[float, int, bytes]:
        """Milliseconds, bytes of the whole answer, and its body. Raises RuntimeError unless it is a 200."""
        headers = self._headers | ({"Accept-Encoding": "identity"} if plain else {})
        began = time.perf_counter()
        self._connection.request("GET", target, headers=headers)
        answer = self._connection.getresponse()
        body = answer.read()
        took = (time.perf_counter() - began) * 1_000
        if answer.status != 200:
            raise RuntimeError(f"{target} was answered {answer.status}: {body[:300]!r}")
        head = sum(len(name) + len(value) + 4 for name, value in answer.getheaders())
        return took, head + len(body), body


@contextmanager
def served(store: str, size: Size) -> Iterator[Served]:
    """Serve the console once searches have their index. `store`: `sqlite`, or `postgres` with Valkey."""
    print(f"{store}: filling", file=sys.stderr)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings = {"console": "on", "deliveries": "off"}  # its webhooks have no real secrets
        if store == "sqlite":
            source, people = fill_sqlite(size)
            path = copy_of(source, folder)
            url = f"sqlite:///{path}"
        else:
            tuning = ("shared_buffers=512MB", "max_wal_size=4GB", "jit=off")
            database = stack.enter_context(PostgresServer(*tuning).start())
            valkey = stack.enter_context(ValkeyServer().start())
            path, url = folder / "unused", database.url()
            people = fill_postgres(url, size)
            settings |= {"database_url": url, "valkey_url": valkey.url}
        server = stack.enter_context(servers.petstore("console", path, settings=settings))
        print(f"{store}: the index of names is made", file=sys.stderr)
        reader = Reader(server.port, people)
        while b"The index of names is being made" in reader.get("/console/search?q=be", plain=True)[2]:
            time.sleep(1)
        print(f"{store}: measuring", file=sys.stderr)
        yield Served(server.port, people, url)
