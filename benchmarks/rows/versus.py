"""This program beside an earlier one, by turns: what has become slower since, whatever the machine does."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

import msgspec

from benchmarks import servers
from benchmarks.data import copy_of, database
from benchmarks.interleaved import Plan, medians
from benchmarks.load.closed import Load, run
from benchmarks.report import Row
from benchmarks.rows.reads import ANIMALS, LIST, random_pages
from benchmarks.rows.writes import BODY
from tests.support.programs import from_history

_NOW = "now"
_ROWS = ("list, unchanged data", "list, random cursors", "POST, 64 connections", "list, access log on")
_WARM_UP_SECONDS = 1.0


def measure(plan: Plan, commit: str) -> list[Row]:
    """The program of `commit`, built from history, and this one. Each round starts both anew.

    The ratio is the median of the rounds' ratios: machines drift by more than what is looked for.
    """
    once = msgspec.structs.replace(plan, rounds=1)
    with tempfile.TemporaryDirectory() as temporary:
        earlier = from_history(commit, Path(temporary) / "earlier")
        programs = {commit: earlier, _NOW: Path(sys.executable).parent / "petstore"}
        # Who comes second meets a disk that still writes for the first: the order changes with each round.
        orders = cycle((programs, dict(reversed(programs.items()))))
        taken = [_measure_once(once, next(orders)) for _ in range(plan.rounds)]
    rows = []
    for name in _ROWS:
        before = [values[f"{name}: {commit}"] for values in taken]
        now = [values[f"{name}: {_NOW}"] for values in taken]
        ratio = statistics.median(b / a for a, b in zip(before, now, strict=True))
        rows.append(Row("versus", f"{name}: {commit}", statistics.median(before), "requests/s"))
        rows.append(
            Row("versus", f"{name}: {_NOW}", statistics.median(now), "requests/s", ratio, commit, ">= 0.98")
        )
    return rows


def _measure_once(plan: Plan, programs: dict[str, Path]) -> dict[str, float]:
    """Every row of both programs; a row of one follows the same row of the other."""
    source, (key, *_) = database(ANIMALS)
    page = Load((f"{LIST} {key}",))
    loads = dict(
        zip(
            _ROWS,
            (page, Load(random_pages(key)), Load((f"/v1/pets {key}",), "POST", BODY, 64, 201), page),
            strict=True,
        )
    )
    with tempfile.TemporaryDirectory(dir=source.parent) as temporary, ExitStack() as started:

        def start(version: str, *, access_log: bool) -> int:
            name = f"{version}-{access_log}"
            file = copy_of(source, Path(temporary))
            server = servers.petstore(name, file, access_log=access_log, program=programs[version])
            port = started.enter_context(server).port
            run(page, port, _WARM_UP_SECONDS)
            return port

        def measurement(load: Load, port: int) -> Callable[[], float]:
            return lambda: run(load, port, plan.seconds).per_second

        measurements = {}
        ports = {(v, log): start(v, access_log=log) for v in programs for log in (False, True)}
        for row, load in loads.items():
            for version in programs:
                port = ports[version, row.endswith("log on")]
                measurements[f"{row}: {version}"] = measurement(load, port)
        return medians(measurements, plan)
