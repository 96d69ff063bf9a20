"""Webhooks: how soon an event arrives, also beside a dead receiver; how many arrive a second, and what that
takes from `/v1`; and what a thousand webhooks cost that nothing is for.
"""

from __future__ import annotations

import itertools
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from statistics import geometric_mean, median, quantiles
from typing import Any

from tests.support.cluster import Client
from tests.support.server import Response
from tools.servers.petstore import run as run_command
from verification.benchmarks import servers
from verification.benchmarks.capacity.stock import write_list
from verification.benchmarks.data import copy_of, database, filling
from verification.benchmarks.interleaved import Plan
from verification.benchmarks.load.arrivals import Arrivals
from verification.benchmarks.load.closed import Load, run
from verification.benchmarks.machine import cores
from verification.benchmarks.report import Row
from verification.benchmarks.rows.reads import ANIMALS, LIST, random_pages
from verification.benchmarks.rows.shared import backing
from verification.benchmarks.rows.writes import BODY

ADDITIONS, HEALTHY, IDLE, BACKLOG = 300, 50, 1_000, 20_000
_PAUSE_SECONDS = (0.02, 0.125)
_NEW = {"name": "Rex", "categoryId": 1}
_ARRIVES_SECONDS = 60.0
_LOOP = "a loop of the lowest priority"
_MANY = 10  # webhooks that a backlog is for
_BY_SQL = (
    "INSERT INTO webhooks (account_id, key_id, url, types, description, created_at_ms, secrets, data_set,"
    " after_transaction, after_id) SELECT 1, 1, 'http://127.0.0.1:9/', 'limit.*', '', 0, '[]', identity, 0, 0"
    f" FROM data_set, (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < {IDLE})"
    " SELECT n FROM c)"
)


class _Shop:
    """A running service, as its account sees it."""

    def __init__(self, server: servers.Server, key: str) -> None:
        self._server, self._key = server, key

    def ask(self, method: str, target: str, document: object = None) -> Response:
        """Raises AssertionError for an error."""
        with closing(Client(self._server.port, self._key)) as client:  # a kept one ends between two rows
            answer = client(method, target, document)
        assert answer.status < 300, (target, answer.status, answer.body)
        return answer

    def bookmark(self) -> str:
        """Return the bookmark of this moment."""
        return re.sub(r".*after=([^&>]+).*", r"\1", self.ask("GET", "/v1/events?after=now").headers["link"])

    def listen(self, port: int, *paths: str, types: tuple[str, ...] = ("pet.*",)) -> list[int]:
        """Webhooks to these paths of a receiver; their ids, once they are delivered to."""
        asked = [{"url": f"http://127.0.0.1:{port}{path}", "types": types} for path in paths]
        made = [self.ask("POST", "/v1/webhooks", document).json()["id"] for document in asked]
        time.sleep(2)
        return made


def measure(plan: Plan) -> list[Row]:
    """Measure on SQLite, and over two replicas too how soon an event arrives."""
    source, (key, *_) = database(ANIMALS)
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as started:
        folder = Path(temporary)
        rows = (
            _soon(source, key, folder) + _many(source, key, folder, plan) + _idle(source, key, folder, plan)
        )
        over = started.enter_context(backing(folder))
        first, _ = (started.enter_context(over.replica(folder, 1)) for _ in range(2))
        arrivals = Arrivals()
        port = started.enter_context(arrivals.taken())
        shop = _Shop(first, over.key)
        shop.listen(port, "/0")
        return rows + _quantiles("two replicas: an addition to its webhook", _times(shop, arrivals, ["/0"]))


@contextmanager
def _open(name: str, source: Path, key: str, folder: Path, **settings: str) -> Iterator[_Shop]:
    on = cores()[0] | cores()[1]  # as on a machine where nothing is pinned
    with servers.petstore(name, copy_of(source, folder), settings=settings, on=on) as server:
        yield _Shop(server, key)


def _soon(source: Path, key: str, folder: Path) -> list[Row]:
    """One webhook; and fifty, without and with one beside them that never answers, by turns."""
    paths = [f"/{n}" for n in range(HEALTHY)]
    alone, without, beside = Arrivals(), Arrivals(), Arrivals()
    with ExitStack() as opened:
        ports = [opened.enter_context(each.taken()) for each in (alone, without, beside)]
        names = ("alone", "without", "beside")
        shops = [opened.enter_context(_open(name, source, key, folder)) for name in names]
        shops[0].listen(ports[0], "/0")
        shops[1].listen(ports[1], *paths)
        shops[2].listen(ports[2], *paths, "/dead")
        rows = _quantiles("one process: an addition to its webhook", _times(shops[0], alone, ["/0"]))
        taken: list[list[float]] = [[], []]
        for _ in range(10):
            taken[0] += _times(shops[1], without, paths, ADDITIONS // 10)
            taken[1] += _times(shops[2], beside, paths, ADDITIONS // 10)
    rows += _quantiles(f"to {HEALTHY} webhooks", taken[0])
    p99 = quantiles(taken[1], n=100)[98]
    ratio = p99 / quantiles(taken[0], n=100)[98]
    name = f"to {HEALTHY} webhooks beside a dead one, p99"
    return [*rows, Row("webhooks", name, p99, "ms", ratio, "without it", "<= 1.2")]


def _times(shop: _Shop, arrivals: Arrivals, paths: list[str], additions: int = ADDITIONS) -> list[float]:
    """Milliseconds from the beginning of an addition to its arrival at each path."""
    times = []
    for _ in range(additions):
        time.sleep(random.uniform(*_PAUSE_SECONDS))
        began = time.perf_counter()
        pet = shop.ask("POST", "/v1/pets", _NEW).json()["id"]
        ends = began + _ARRIVES_SECONDS
        while not all(pet in arrivals.at[path] for path in paths):
            assert time.perf_counter() < ends, "an event does not arrive"
            time.sleep(0.001)
        times += [(arrivals.at[path][pet] - began) * 1_000 for path in paths]
    return times


def _many(source: Path, key: str, folder: Path, plan: Plan) -> list[Row]:
    """The events of an import to one webhook and to ten, then to ten while lists are asked for."""
    arrivals = Arrivals()
    file = copy_of(source, folder)
    on = cores()[0] | cores()[1]
    with arrivals.taken() as port, servers.petstore("many", file, on=on) as server:
        shop = _Shop(server, key)
        begin = shop.bookmark()
        _import(file, folder)
        rows = []
        made: list[int] = []
        for count, name in ((1, "one webhook"), (_MANY, f"{_MANY} webhooks")):
            made += shop.listen(port, *[f"/{n}" for n in range(len(made), count)])
            rows.append(
                Row("webhooks", f"deliveries to {name}", _rate(shop, arrivals, made, begin), "a second")
            )
        load = Load((f"{LIST} {key}",))
        taken: dict[str, list[float]] = {"nothing else": [], _LOOP: [], "a backlog": []}
        sent: list[float] = []
        for _ in range(plan.rounds):
            for beside, rates in taken.items():
                _switch(shop, made, {"enabled": beside == "a backlog", "after": begin})
                with _looping() if beside == _LOOP else nullcontext():
                    time.sleep(1)
                    before, began = arrivals.count, time.perf_counter()
                    rates.append(run(load, server.port, plan.seconds).per_second)
                if beside == "a backlog":
                    sent.append((arrivals.count - before) / (time.perf_counter() - began))
        names = list(taken)
        for name, over, target in zip(names, ["", *names], ["", "", ">= 0.95"], strict=False):
            pairs = zip(taken[name], taken[over], strict=True) if over else ()
            ratio = geometric_mean(a / b for a, b in pairs) if over else None
            value = median(taken[name])
            rows.append(Row("webhooks", f"list, beside {name}", value, "requests/s", ratio, over, target))
        return [*rows, Row("webhooks", "deliveries beside the list", median(sent), "a second")]


@contextmanager
def _looping() -> Iterator[None]:
    """What any process takes from the others of this machine, however low its priority."""
    command = [sys.executable, "-c", "import os\nos.nice(19)\nwhile True: pass"]
    loop = subprocess.Popen(command)
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


def _rate(shop: _Shop, arrivals: Arrivals, made: list[int], begin: str) -> float:
    _switch(shop, made, {"enabled": False})
    time.sleep(1)
    before, began = arrivals.count, time.perf_counter()
    _switch(shop, made, {"enabled": True, "after": begin})
    while arrivals.count - before < BACKLOG * len(made):
        time.sleep(0.01)
    return BACKLOG * len(made) / (time.perf_counter() - began)


def _switch(shop: _Shop, made: list[int], change: dict[str, Any]) -> None:
    for webhook in made:
        shop.ask("PATCH", f"/v1/webhooks/{webhook}", change)


def _import(file: Path, folder: Path) -> None:
    path = folder / "stock.csv"
    write_list(path, BACKLOG)
    words = ("pets", "import", path, "--source-key", "sku")
    run_command(*words, settings={"database_url": f"sqlite:///{file}"}, cwd=folder).check_returncode()


def _idle(source: Path, key: str, folder: Path, plan: Plan) -> list[Row]:
    """A store without webhooks beside one with a thousand that nothing is for, by turns."""
    full = copy_of(source, folder)
    with filling(full) as connection:
        connection.execute(_BY_SQL)
    loads = {
        "list": Load((f"{LIST} {key}",)),
        "random cursors": Load(random_pages(key)),
        "POST, 64 connections": Load((f"/v1/pets {key}",), "POST", BODY, 64, 201),
    }
    rows = []
    with ExitStack() as opened:
        running = {
            name: opened.enter_context(servers.petstore(name.replace(" ", "-"), file))
            for name, file in (("none", copy_of(source, folder)), (f"{IDLE:,} idle", full))
        }
        none, idle = running
        time.sleep(3)
        for load_name, load in loads.items():
            taken: dict[str, list[float]] = {name: [] for name in running}
            orders = itertools.cycle((list(running), list(reversed(running))))
            for order in itertools.islice(orders, 2 * plan.rounds):
                for name in order:
                    taken[name].append(run(load, running[name].port, plan.seconds).per_second)
            ratio = geometric_mean(a / b for a, b in zip(taken[idle], taken[none], strict=True))
            value = median(taken[idle])
            rows.append(
                Row("webhooks", f"{load_name}, {idle}", value, "requests/s", ratio, "none", ">= 0.97")
            )
    return rows


def _quantiles(name: str, times: list[float]) -> list[Row]:
    return [Row("webhooks", f"{name}, p{at}", quantiles(times, n=100)[at - 1], "ms") for at in (50, 99)]
