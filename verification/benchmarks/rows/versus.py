"""This program beside an earlier one, by turns: what has become slower since, whatever the machine does.

Compared is the processor time of the server for one request, and how long a start takes to its first answer.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

from tests.support.programs import from_history
from verification.benchmarks import servers
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan
from verification.benchmarks.load.bursts import REQUESTS, Bursts
from verification.benchmarks.load.closed import Load, pin, run
from verification.benchmarks.report import Row
from verification.benchmarks.rows.reads import ANIMALS, LIST, random_pages
from verification.benchmarks.rows.shared import Backing, backing
from verification.benchmarks.rows.writes import BODY

_NOW = "now"
_START, _LOGGED, _REFUSED = "start", "list, access log on", "429"
# Refusals first, within their minute.
_ROWS = (
    *(_REFUSED, "list, unchanged data", "list, random cursors", "POST, 64 connections", _LOGGED),
    *("one animal", "401", "404"),
)
_SHARED = ("shared, list", "shared, random cursors", "shared, POST, 64 connections")
_WARM_UP_SECONDS = 1.0


def measure(plan: Plan, commit: str) -> list[Row]:
    """The program of `commit`, built from history, and this one. Each round starts both anew: a process is up
    to 7 % quicker than the next one, for as long as it lives. The ratio is the geometric mean of the rounds'.
    """
    pin()  # the bursts are of this process
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        earlier = from_history(commit, folder / "earlier")
        programs = {commit: earlier, _NOW: Path(sys.executable).parent / "petstore"}
        with backing(folder) as shared:
            # The second meets a disk that still writes for the first: the order changes with each round.
            orders = itertools.cycle((programs, dict(reversed(programs.items()))))
            taken = [
                _measure_embedded(plan, order) | _measure_shared(plan, order, shared, folder)
                for order in itertools.islice(orders, plan.rounds)
            ]
    rows = []
    for name in (_START, *_ROWS, *_SHARED):
        before = [values[f"{name}: {commit}"] for values in taken]
        now = [values[f"{name}: {_NOW}"] for values in taken]
        ratio = statistics.geometric_mean(a / b for a, b in zip(before, now, strict=True))
        unit = "ms" if name == _START else "us a request"
        rows.append(Row("versus", f"{name}: {commit}", statistics.median(before), unit))
        rows.append(Row("versus", f"{name}: {_NOW}", statistics.median(now), unit, ratio, commit, ">= 0.98"))
    return rows


def _measure_embedded(plan: Plan, programs: dict[str, Path]) -> dict[str, float]:
    """The rows on SQLite, of both programs."""
    source, (key, *_) = database(ANIMALS)
    page = _loads(key)[0]
    others = (
        page,
        Load((f"/v1/pets/4711 {key}",)),
        Load((LIST,), expect=401),
        Load((f"/v1/pets/999999999 {key}",), expect=404),
    )
    spent, (spent_key, *_) = database(0, per_minute=1)
    refused = Load((f"{LIST} {spent_key}",), expect=429)
    loads = dict(zip(_ROWS, (refused, *_loads(key), *others), strict=True))
    with tempfile.TemporaryDirectory(dir=source.parent) as temporary, ExitStack() as started:

        def start(version: str, row: str) -> servers.Server:
            file = copy_of(spent if row == _REFUSED else source, Path(temporary))
            log = row == _LOGGED
            server = servers.petstore(f"{version}-{row}", file, access_log=log, program=programs[version])
            running = started.enter_context(server)
            run(refused if row == _REFUSED else page, running.port, _WARM_UP_SECONDS)
            return running

        kinds = ("others", _LOGGED, _REFUSED)
        running = {(v, kind): start(v, kind) for kind in kinds for v in programs}
        starts = {
            f"{_START}: {v}": min(running[v, kind].started_seconds for kind in kinds) * 1_000
            for v in programs
        }
        return starts | _by_turns(
            plan, loads, programs, lambda row, v: running.get((v, row), running[v, "others"])
        )


def _measure_shared(plan: Plan, programs: dict[str, Path], shared: Backing, folder: Path) -> dict[str, float]:
    """The rows over one PostgreSQL and one Valkey, with a replica of each program."""
    loads = dict(zip(_SHARED, _loads(shared.key), strict=True))
    with ExitStack() as started:
        running = {}
        for version, program in programs.items():
            running[version] = started.enter_context(shared.replica(folder, 1, program))
            run(loads[_SHARED[0]], running[version].port, _WARM_UP_SECONDS)
        return _by_turns(plan, loads, programs, lambda _, version: running[version])


def _loads(key: str) -> tuple[Load, Load, Load]:
    """A list, lists at random places, and additions."""
    page = Load((f"{LIST} {key}",))
    return page, Load(random_pages(key)), Load((f"/v1/pets {key}",), "POST", BODY, 64, 201)


def _by_turns(
    plan: Plan,
    loads: dict[str, Load],
    programs: dict[str, Path],
    server: Callable[[str, str], servers.Server],
) -> dict[str, float]:
    """Microseconds of a program's server for a request, by row and program: the median of its bursts."""
    medians = {}
    for row, load in loads.items():
        with ExitStack() as opened:
            bursts = {v: opened.enter_context(closing(Bursts(load, server(row, v).port))) for v in programs}
            taken: dict[str, list[float]] = {version: [] for version in programs}
            order = list(programs)
            ends = time.monotonic() + plan.seconds * len(programs)
            while time.monotonic() < ends:
                for version in order:
                    before = server(row, version).cpu_seconds()
                    if unexpected := bursts[version].one():
                        raise RuntimeError(f"{unexpected} answers were not {load.expect}: {row}")
                    taken[version].append(server(row, version).cpu_seconds() - before)
                order.reverse()
        for version, seconds in taken.items():
            medians[f"{row}: {version}"] = statistics.median(seconds) / REQUESTS * 1e6
    return medians
