"""A server with its console on, over a large store."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

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


@contextmanager
def served(store: str, size: Size, say: Callable[[str], None]) -> Iterator[Served]:
    """Once searches have their index. `store`: `sqlite`, or `postgres`, which comes with Valkey."""
    say(f"{store}: filling")
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
            people = fill_postgres(url, size, say)
            settings |= {"database_url": url, "valkey_url": valkey.url}
        server = stack.enter_context(servers.petstore("console", path, settings=settings))
        say(f"{store}: the index of names is made")
        while b"The index of names is being made" in _searched(server.port, people):
            time.sleep(1)
        say(f"{store}: measuring")
        yield Served(server.port, people, url)


def _searched(port: int, people: People) -> bytes:
    asked = Request(
        f"http://127.0.0.1:{port}/console/search?q=be", headers={"Cookie": f"petstore-session={people.token}"}
    )
    with urlopen(asked, timeout=60) as answer:
        return bytes(answer.read())
