"""What else it costs: the access log, latency at half of the peak, memory, and starting."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from verification.benchmarks import servers
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan, medians
from verification.benchmarks.load.closed import Load, run
from verification.benchmarks.report import Row
from verification.benchmarks.rows.reads import ANIMALS, LIST

REQUESTS = 1_000_000


def measure_log(plan: Plan) -> list[Row]:
    """The list with the access log on and off."""
    source, (key, *_) = database(ANIMALS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with (
            servers.petstore("quiet", copy_of(source, folder)) as quiet,
            servers.petstore("logging", copy_of(source, folder), access_log=True) as logging,
        ):

            def load(server: servers.Server) -> Callable[[], float]:
                return lambda: run(Load((f"{LIST} {key}",)), server.port, plan.seconds).per_second

            taken = medians({"access log off": load(quiet), "access log on": load(logging)}, plan)
    base = taken["access log off"]
    return [
        Row("log", name, value, "requests/s", value / base, "off", ">= 0.9" if "on" in name[-2:] else "")
        for name, value in taken.items()
    ]


def measure_resources(plan: Plan) -> list[Row]:
    """Start-up, memory at rest and after a million requests, latency at half of the peak."""
    source, (key, *_) = database(ANIMALS)
    rows = []
    with (
        tempfile.TemporaryDirectory() as temporary,
        servers.petstore("resources", copy_of(source, Path(temporary))) as shop,
    ):
        rows.append(Row("start", "to the first answer", shop.started_seconds * 1_000, "ms"))
        rows.append(Row("memory", "at rest, all processes", shop.rss_mib(), "MiB"))
        line = f"{LIST} {key}"
        peak = run(Load((line,)), shop.port, plan.seconds).per_second
        run(Load((line,)), shop.port, REQUESTS / peak)
        rows.append(Row("memory", "after a million requests", shop.rss_mib(), "MiB"))
    return rows
