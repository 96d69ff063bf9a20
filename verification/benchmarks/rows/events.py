"""Requests that wait for events: what a thousand of them take at rest, and how soon one knows of a change."""

from __future__ import annotations

import random
import re
import selectors
import socket
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles

from tests.support.raw import RawConnection
from tests.support.server import issue_key
from verification.benchmarks import servers
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan
from verification.benchmarks.load.client import request_bytes
from verification.benchmarks.report import Row
from verification.benchmarks.rows.reads import ANIMALS
from verification.benchmarks.rows.shared import backing
from verification.benchmarks.rows.writes import BODY

WAITERS, COMMITS = 1_000, 500
_OF_ONE_ACCOUNT = 100  # as an Enterprise account may have
_SETTLE_SECONDS, _REST_SECONDS = 3.0, 20.0
# Until a request waits again; over all of the time between two looks of a replica.
_PAUSE_SECONDS = (0.02, 0.125)
_NOW = "/v1/events?after=now&wait=120"


def measure(_: Plan) -> list[Row]:
    """One process on SQLite, then two replicas over PostgreSQL and Valkey: the writer at one of them."""
    source, (key, *_others) = database(ANIMALS)
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as started:
        folder = Path(temporary)
        file = copy_of(source, folder)
        keys = [issue_key(file, f"waits-{number}") for number in range(WAITERS // _OF_ONE_ACCOUNT)]
        with servers.petstore("waits", file) as shop:
            rows = _rest(shop, keys)
            rows += _reach("one process", key, shop.port, shop.port)
        over = started.enter_context(backing(folder))
        first, second = (started.enter_context(over.replica(folder, 1)) for _ in range(2))
        return rows + _reach("two replicas", over.key, first.port, second.port)


def _rest(shop: servers.Server, keys: list[str]) -> list[Row]:
    """Memory and processor time of all processes, before anybody waits and with all."""
    taken = [_at_rest(shop)]
    waiters = [RawConnection(shop.port) for _ in range(WAITERS)]
    for number, waiter in enumerate(waiters):
        waiter.send(request_bytes(f"{_NOW} {keys[number % len(keys)]}", "GET"))
    taken.append(_at_rest(shop))
    for waiter in waiters:
        waiter.close()
    names = ("nobody waits", f"{WAITERS:,} wait")
    (memory, spent), (memory_then, spent_then) = taken
    return [
        *(Row("events", f"memory, {n}", v, "MiB") for n, v in zip(names, (memory, memory_then), strict=True)),
        *(
            Row("events", f"processor time, {n}", v, "ms a second")
            for n, v in zip(names, (spent, spent_then), strict=True)
        ),
    ]


def _at_rest(shop: servers.Server) -> tuple[float, float]:
    time.sleep(_SETTLE_SECONDS)
    before = shop.cpu_seconds()
    time.sleep(_REST_SECONDS)
    return shop.pss_mib(), (shop.cpu_seconds() - before) / _REST_SECONDS * 1_000


def _reach(name: str, key: str, writes_at: int, waits_at: int) -> list[Row]:
    """The time from the beginning of an addition to its own answer, and to that of a request that waits."""
    writer, waiter = RawConnection(writes_at), RawConnection(waits_at)
    waiter.send(request_bytes(f"/v1/events?after=now {key}", "GET"))
    target = f"{_next_of(waiter)}&wait=120"
    times: dict[socket.socket, list[float]] = {writer.socket: [], waiter.socket: []}
    for _ in range(COMMITS):
        waiter.send(request_bytes(f"{target} {key}", "GET"))
        time.sleep(random.uniform(*_PAUSE_SECONDS))
        began = time.perf_counter()
        writer.send(request_bytes(f"/v1/pets {key}", "POST", BODY))
        arrived = _arrivals(writer.socket, waiter.socket)
        for each, at in arrived.items():
            times[each].append((at - began) * 1_000)
        assert writer.read().status == 201
        target = _next_of(waiter)
    writer.close()
    waiter.close()
    return [
        Row("events", f"{name}: an addition to its {what}, p{at}", quantiles(taken, n=100)[at - 1], "ms")
        for what, taken in zip(("answer", "event"), times.values(), strict=True)
        for at in (50, 99)
    ]


def _next_of(connection: RawConnection) -> str:
    found = re.search("<([^>]+)>", connection.read().headers["link"])
    assert found is not None
    return found[1]


def _arrivals(*sockets: socket.socket) -> dict[socket.socket, float]:
    """When each of them has something to read."""
    arrived: dict[socket.socket, float] = {}
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            selector.register(each, selectors.EVENT_READ)
        while len(arrived) < len(sockets):
            for ready, _ in selector.select():
                arrived[ready.fileobj] = time.perf_counter()  # type: ignore[index]
                selector.unregister(ready.fileobj)
    return arrived
