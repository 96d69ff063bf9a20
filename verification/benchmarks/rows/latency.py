"""Latency in an open loop: at half of the peak beside the ceiling, then at a modest rate beside other work.

What works beside the service has the service's core too, as on a machine with one.
"""

from __future__ import annotations

import itertools
import os
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tools.servers import petstore
from tools.servers.child import children, status_of, workers
from verification.benchmarks import servers
from verification.benchmarks.capacity.stock import write_list
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan
from verification.benchmarks.load.closed import Load, run
from verification.benchmarks.load.heartbeat import Beats, heartbeat
from verification.benchmarks.load.open_loop import PERCENTILES, Interval, Latency, open_loop
from verification.benchmarks.machine import cores
from verification.benchmarks.report import Row
from verification.benchmarks.rows.reads import ANIMALS, LIST, page_bytes
from verification.benchmarks.rows.shared import backing
from verification.benchmarks.rows.writes import BODY, post

_SECONDS_MIN = 2.0
_LISTS_PER_SECOND = 1_000.0
_POSTS_PER_SECOND = 200.0
_STOCK_ROWS = 5_000
_RELOAD_SECONDS_MAX = 30.0
_RELOAD_PAUSE_SECONDS = 1.0
_READERS_PAUSE_SECONDS = 0.1
_WARM_UP_SECONDS = 1.0
_DOCUMENTS = ("/openapi.yaml", "/docs/reference", "/docs/guide", "/docs/search?q=retry")
_CAUSES = ("worked", "waited", "without a core", "of the generator", "of the machine")
_WORKED, _WAITED, _NO_CORE, _GENERATOR, _MACHINE = _CAUSES

Work = Callable[[], object]


class _Measurement:
    """Requests at a rate, while `work` is done beside them again and again."""

    def __init__(self, load: Load, rate: float, work: Work | None = None) -> None:
        self._load, self._rate, self._work = load, rate, work
        self._taken: list[Latency] = []
        self.causes: Counter[str] = Counter()

    def take(self, server: servers.Server, seconds: float) -> None:
        """One turn."""
        pid, *_ = *workers(server.pid), server.pid
        with heartbeat(pid) as beats, _again(self._work):
            latency = open_loop(server.port, seconds, self._rate, self._load)
        self._taken.append(latency)
        self.causes.update(cause_of(stall, latency.late, beats) for stall in latency.stalls)

    def median(self, percentile: str) -> float:
        return statistics.median(taken.percentiles[percentile] for taken in self._taken)


def cause_of(stall: Interval, late: list[Interval], beats: Beats) -> str:
    """What was so for at least half of a stall: generator and heartbeat did not run, or one of them, the
    server had no core, or worked; else it waited, for a disk, a lock, another process or its successor."""
    if _is_most(stall, late):
        return _MACHINE if _is_most(stall, beats.late) else _GENERATOR
    if _is_most(stall, [*late, *beats.late, *beats.without_core]):
        return _NO_CORE
    return _WORKED if _is_most(stall, beats.working) else _WAITED


def _is_most(stall: Interval, intervals: list[Interval]) -> bool:
    at, ended = stall
    covered = 0.0
    for begin, end in sorted(intervals):
        begin, end = max(begin, at), min(end, ended)
        if begin < end:
            covered += end - begin
            at = end
    return covered >= (ended - stall[0]) / 2


def _stalls(group: str, name: str, causes: Counter[str]) -> Row:
    named = ", ".join(f"{cause} {causes[cause]}" for cause in _CAUSES if causes[cause])
    return Row(group, f"{name}: over 5 ms{named and f', {named}'}", causes.total(), "stalls")


@contextmanager
def _again(work: Work | None) -> Iterator[None]:
    """Work in a thread until the end of the block, which raises what the work raises."""
    ended = threading.Event()

    def until_it_ends() -> None:
        while work and not ended.is_set():
            work()

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(until_it_ends)
        try:
            yield
        finally:
            ended.set()
        working.result()


def measure(plan: Plan) -> list[Row]:
    """The rows of both stores after those beside the ceiling."""
    seconds = max(plan.seconds, _SECONDS_MIN)
    with tempfile.TemporaryDirectory(dir=database(ANIMALS)[0].parent) as temporary:
        at_half = _at_half(seconds, plan.rounds, Path(temporary))
        embedded = _embedded(seconds, plan.rounds, Path(temporary))
        embedded += _beside_first_readers(plan.rounds, Path(temporary))
    return at_half + embedded + _shared(seconds, plan.rounds)


def _at_half(seconds: float, rounds: int, folder: Path) -> list[Row]:
    """The list and the ceiling at one rate, by turns."""
    source, (key, *_) = database(ANIMALS)
    load = Load((f"{LIST} {key}",))
    with (
        servers.petstore("half", copy_of(source, folder)) as shop,
        servers.ceiling(folder, page_bytes(shop.port, key)) as top,
    ):
        run(Load(("/",)), top.port, _WARM_UP_SECONDS)
        run(load, shop.port, _WARM_UP_SECONDS)
        rate = run(load, shop.port, seconds).per_second / 2
        ceiling, listing = _Measurement(Load(("/",)), rate), _Measurement(load, rate)
        for _ in range(rounds):
            ceiling.take(top, seconds)
            listing.take(shop, seconds)
    group = f"latency at {rate:,.0f} requests/s, half of the peak"
    rows = []
    for name in (f"p{share:g}" for share in PERCENTILES):
        base, value = ceiling.median(name), listing.median(name)
        rows.append(Row(group, f"ceiling: {name}", base, "ms"))
        target = "<= 1.5" if name == "p99" else ""
        rows.append(Row(group, f"list: {name}", value, "ms", value / base, "ceiling", target))
    return [*rows, _stalls(group, "ceiling", ceiling.causes), _stalls(group, "list", listing.causes)]


def _embedded(seconds: float, rounds: int, folder: Path) -> list[Row]:
    source, (key, *_) = database(ANIMALS)
    file = copy_of(source, folder)
    settings = {"database_url": f"sqlite:///{file}"}

    def back_up() -> None:
        copy = file.with_suffix(".backup")
        _command(settings, "db", "backup", copy)
        copy.unlink()

    with servers.petstore("latency", file) as shop:
        works = {
            "an import": _import(settings, folder),
            "a backup": back_up,
            "POSTs and checkpoints": post(shop.port, key, 1, 1.0),
            "scrapes": lambda: _read(shop.port, "/metrics"),
            "reloads": _reload(shop),
        }
        before = file.stat().st_mtime_ns
        rows = _beside("latency, SQLite", shop, key, works, seconds, rounds)
        if file.stat().st_mtime_ns == before:
            raise RuntimeError("there was no checkpoint")
    return rows


def _beside_first_readers(rounds: int, folder: Path) -> list[Row]:
    """Lists of a service that has just started, alone and while it makes its documents, for two seconds."""
    source, (key, *_) = database(ANIMALS)
    load = Load((f"{LIST} {key}",))
    alone = _Measurement(load, _LISTS_PER_SECOND)
    read = _Measurement(load, _LISTS_PER_SECOND, lambda: _read(shop.port, *_DOCUMENTS))
    for _ in range(rounds):
        with servers.petstore("read", copy_of(source, folder)) as shop:
            run(load, shop.port, _WARM_UP_SECONDS)
            alone.take(shop, _SECONDS_MIN)
            read.take(shop, _SECONDS_MIN)
    measurements = {"list": alone, "list beside first readers of the documentation": read}
    return _rows("latency after a start, SQLite", measurements)


def _shared(seconds: float, rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with backing(folder) as shared, shared.replica(folder, 1) as shop:
            url = shared.settings["database_url"]
            dump: list[str | Path] = [
                shared.programs / "pg_dump",
                "--format=custom",
                f"--file={folder / 'dump'}",
                url,
            ]
            works = {
                "an import": _import(shared.settings, folder),
                "pg_dump": lambda: subprocess.run(dump, check=True, preexec_fn=_on_the_server_s_core),
                "reloads": _reload(shop),
            }
            return _beside("latency, PostgreSQL and Valkey", shop, shared.key, works, seconds, rounds)


def _beside(
    group: str, shop: servers.Server, key: str, works: Mapping[str, Work], seconds: float, rounds: int
) -> list[Row]:
    """Lists and additions alone, then lists beside each work, by turns."""
    lists, posts = Load((f"{LIST} {key}",)), Load((f"/v1/pets {key}",), "POST", BODY, expect=201)
    measurements = {
        "list": _Measurement(lists, _LISTS_PER_SECOND),
        "POST": _Measurement(posts, _POSTS_PER_SECOND),
    }
    for name, work in works.items():
        measurements[f"list beside {name}"] = _Measurement(lists, _LISTS_PER_SECOND, work)
    run(lists, shop.port, _WARM_UP_SECONDS)
    for _ in range(rounds):
        for measurement in measurements.values():
            measurement.take(shop, seconds)
    return _rows(group, measurements)


def _rows(group: str, measurements: Mapping[str, _Measurement]) -> list[Row]:
    """The rows of each measurement, beside that of "list"."""
    rows = []
    for name, measurement in measurements.items():
        for percentile in ("p50", "p99"):
            value = measurement.median(percentile)
            over = (value / measurements["list"].median(percentile), "list") if name != "POST" else ()
            rows.append(Row(group, f"{name}: {percentile}", value, "ms", *over))
        rows.append(_stalls(group, name, measurement.causes))
    return rows


def _on_the_server_s_core() -> None:
    os.sched_setaffinity(0, cores()[0])


def _command(settings: Mapping[str, str], *words: str | Path) -> None:
    petstore.run(*words, settings=settings, preexec_fn=_on_the_server_s_core).check_returncode()


def _import(settings: Mapping[str, str], folder: Path) -> Work:
    """An import of a stock list, of which a tenth has changed since the import before."""
    lists = [folder / "pets.csv", folder / "cats.csv"]
    for path, renamed in zip(lists, ("Pet", "Cat"), strict=True):
        write_list(path, _STOCK_ROWS, renamed)
    turns = itertools.cycle(lists)
    return lambda: _command(settings, "pets", "import", next(turns), "--source-key", "sku")


def _read(port: int, *paths: str) -> None:
    """Read pages, and pause."""
    for path in paths:
        if status_of(port, path) != 200:
            raise RuntimeError(f"{path} was refused")
    time.sleep(_READERS_PAUSE_SECONDS)


def _reload(shop: servers.Server) -> Work:
    """SIGHUP, and all workers are others. Raises RuntimeError when they are not within half a minute."""

    def reload() -> None:
        before = set(workers(shop.pid))
        deadline = time.monotonic() + _RELOAD_SECONDS_MAX
        os.kill(shop.pid, signal.SIGHUP)
        while before & set(children(shop.pid)) or status_of(shop.port, "/readyz") != 200:
            if time.monotonic() > deadline:
                raise RuntimeError("SIGHUP replaced no worker")
            time.sleep(0.02)
        time.sleep(_RELOAD_PAUSE_SECONDS)

    return reload
