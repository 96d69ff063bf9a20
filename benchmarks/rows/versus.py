"""This program beside an earlier one, by turns: what has become slower since, whatever the machine does."""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec

from benchmarks import servers
from benchmarks.data import copy_of, database
from benchmarks.interleaved import Plan, medians
from benchmarks.load.closed import Load, run
from benchmarks.report import Row
from benchmarks.rows.reads import ANIMALS, LIST, random_pages
from benchmarks.rows.shared import Backing, backing
from benchmarks.rows.writes import BODY
from tests.support.programs import from_history

_NOW = "now"
_ROWS = ("list, unchanged data", "list, random cursors", "POST, 64 connections", "list, access log on")
_SHARED = ("shared, list", "shared, random cursors", "shared, POST, 64 connections")
_WARM_UP_SECONDS = 1.0


def measure(plan: Plan, commit: str) -> list[Row]:
    """The program of `commit`, built from history, and this one. Each round starts both anew.

    The ratio is the median of the rounds' ratios: machines drift by more than what is looked for.
    """
    once = msgspec.structs.replace(plan, rounds=1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)  # PostgreSQL does not run as root
        earlier = from_history(commit, folder / "earlier")
        programs = {commit: earlier, _NOW: Path(sys.executable).parent / "petstore"}
        with backing(folder) as shared:
            # The second meets a disk that still writes for the first: the order changes with each round.
            orders = itertools.cycle((programs, dict(reversed(programs.items()))))
            taken = [
                _measure_embedded(once, order) | _measure_shared(once, order, shared, folder)
                for order in itertools.islice(orders, plan.rounds)
            ]
    rows = []
    for name in (*_ROWS, *_SHARED):
        before = [values[f"{name}: {commit}"] for values in taken]
        now = [values[f"{name}: {_NOW}"] for values in taken]
        ratio = statistics.median(b / a for a, b in zip(before, now, strict=True))
        rows.append(Row("versus", f"{name}: {commit}", statistics.median(before), "requests/s"))
        rows.append(
            Row("versus", f"{name}: {_NOW}", statistics.median(now), "requests/s", ratio, commit, ">= 0.98")
        )
    return rows


def _measure_embedded(plan: Plan, programs: dict[str, Path]) -> dict[str, float]:
    """The rows on SQLite, of both programs."""
    source, (key, *_) = database(ANIMALS)
    page = _loads(key)[0]
    loads = dict(zip(_ROWS, (*_loads(key), page), strict=True))
    with tempfile.TemporaryDirectory(dir=source.parent) as temporary, ExitStack() as started:

        def start(version: str, *, access_log: bool) -> int:
            name = f"{version}-{access_log}"
            file = copy_of(source, Path(temporary))
            server = servers.petstore(name, file, access_log=access_log, program=programs[version])
            port = started.enter_context(server).port
            run(page, port, _WARM_UP_SECONDS)
            return port

        ports = {(v, log): start(v, access_log=log) for v in programs for log in (False, True)}
        return _by_turns(plan, loads, programs, lambda row, v: ports[v, row.endswith("log on")])


def _measure_shared(plan: Plan, programs: dict[str, Path], shared: Backing, folder: Path) -> dict[str, float]:
    """The rows over one PostgreSQL and one Valkey, with a replica of each program."""
    loads = dict(zip(_SHARED, _loads(shared.key), strict=True))
    with ExitStack() as started:
        ports = {}
        for version, program in programs.items():
            ports[version] = started.enter_context(shared.replica(folder, 1, program)).port
            run(loads[_SHARED[0]], ports[version], _WARM_UP_SECONDS)
        return _by_turns(plan, loads, programs, lambda _, version: ports[version])


def _loads(key: str) -> tuple[Load, Load, Load]:
    """A list, lists at random places, and additions."""
    page = Load((f"{LIST} {key}",))
    return page, Load(random_pages(key)), Load((f"/v1/pets {key}",), "POST", BODY, 64, 201)


def _by_turns(
    plan: Plan, loads: dict[str, Load], programs: dict[str, Path], port: Callable[[str, str], int]
) -> dict[str, float]:
    """Every row of both programs; a row of one follows the same row of the other."""

    def measurement(load: Load, at: int) -> Callable[[], float]:
        return lambda: run(load, at, plan.seconds).per_second

    return medians(
        {
            f"{row}: {version}": measurement(load, port(row, version))
            for row, load in loads.items()
            for version in programs
        },
        plan,
    )
