"""A stock list imported beside a server under load: seconds, memory, the lock, and what requests notice."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from tests.support.cluster import Client
from tests.support.loops import working
from tests.support.postgres import fresh_database
from tests.support.server import issue_key
from tools.servers.petstore import PROGRAM, environment
from verification.benchmarks import servers
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.load.closed import Load
from verification.benchmarks.load.open_loop import open_loop
from verification.benchmarks.rows.reads import LIST

_RATE = 500.0
_SLICE_SECONDS = 3.0


class Import(msgspec.Struct):
    """One run of the command. `p99` is of lists at 500/s, of the worst 3 seconds; `post_ms` the longest."""

    store: str
    kind: str
    rows: int
    seconds: float
    peak_mib: float
    lock_seconds: float
    p99_before_ms: float
    p99_ms: float
    post_ms: float
    refused_posts: int


class _Posts:
    """Adds animals one after the other; remembers the longest answer and the refusals."""

    def __init__(self, port: int, key: str) -> None:
        self.longest = 0.0
        self.refused = 0
        self._port, self._key = port, key

    def run(self, over: threading.Event) -> None:
        with closing(Client(self._port, self._key)) as client:
            while not over.wait(0.02):
                began = time.monotonic()
                self.refused += client.add("beside").status != 201
                self.longest = max(self.longest, time.monotonic() - began)


def write_list(path: Path, rows: int, renamed: str = "Pet") -> None:
    """Keys in no order; every tenth animal has another name when it is `renamed`."""
    with path.open("w", encoding="ascii") as file:
        file.write("sku,name,categoryId,status\n")
        for number in range(rows):
            name = renamed if number % 10 == 0 else "Pet"
            status = ("available", "", "sold")[number % 3]
            file.write(f"SKU-{number * 7919 % 1_000_003:x},{name} number {number},{number % 97},{status}\n")


def _p99(port: int, key: str) -> float:
    return open_loop(port, _SLICE_SECONDS, _RATE, Load((f"{LIST} {key}",))).percentiles["p99"]


def _import(port: int, key: str, url: str, path: Path, rows: int, what: str) -> Import:
    before = max(_p99(port, key) for _ in range(3))
    command = [str(PROGRAM), "pets", "import", str(path), "--source-key", "sku", "--json"]
    posts, began = _Posts(port, key), time.monotonic()
    running = subprocess.Popen(command, env=environment({"database_url": url}), stdout=subprocess.PIPE)
    ended: list[tuple[float, float]] = []

    def wait(_over: threading.Event) -> None:
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        ended.append((time.monotonic() - began, used.ru_maxrss / 1024))

    worst = 0.0
    with working(posts.run, wait):
        while not ended:
            worst = max(worst, _p99(port, key))
    assert running.returncode == 0
    assert running.stdout is not None
    locked = json.loads(running.stdout.read())["lockedSeconds"]
    ((seconds, peak),) = ended
    longest = posts.longest * 1_000
    store = url.partition(":")[0]
    return Import(store, what, rows, seconds, peak, locked, before, worst, longest, posts.refused)


@contextmanager
def _served(store: str, folder: Path) -> Iterator[tuple[int, str, str]]:
    """A server's port, a key and the URL of its store."""
    if store == "sqlite":
        source, (key, *_) = database(1_000)
        path = copy_of(source, folder)
        with servers.petstore("stock", path) as server:
            yield server.port, key, f"sqlite:///{path}"
        return
    with fresh_database() as url:
        key = issue_key(url)
        with servers.petstore("stock", folder / "none", settings={"database_url": url}) as server:
            yield server.port, key, url


def measure(rows: int, stores: Sequence[str]) -> dict[str, list[Import]]:
    """An import into each store, the same one again, and one with a tenth of the names changed."""
    imports = []
    for store in stores:
        with tempfile.TemporaryDirectory() as temporary, _served(store, Path(temporary)) as served:
            path = Path(temporary) / "stock.csv"
            for what, renamed in (("new", "Pet"), ("the same", "Pet"), ("a tenth changed", "Cat")):
                write_list(path, rows, renamed)
                imports.append(_import(*served, path, rows, what))
    return {"imports": imports}
