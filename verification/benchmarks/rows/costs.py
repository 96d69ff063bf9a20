"""What else it costs: the access log, starting, memory, and processor time at rest."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tools.servers.petstore import PROGRAM
from verification.benchmarks import servers
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan, medians
from verification.benchmarks.load.closed import Load, rate, run
from verification.benchmarks.report import Row, over_one
from verification.benchmarks.rows.reads import ANIMALS, LIST

REQUESTS = 1_000_000
_SETTLE_SECONDS = 2.0
_IDLE_SECONDS = 30.0


def measure_log(plan: Plan) -> list[Row]:
    """The list with the access log on and off."""
    source, (key, *_) = database(ANIMALS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with (
            servers.petstore("quiet", copy_of(source, folder)) as quiet,
            servers.petstore("logging", copy_of(source, folder), access_log=True) as logging,
        ):
            load = Load((f"{LIST} {key}",))
            measurements = {
                "access log off": rate(load, quiet.port, plan.seconds),
                "access log on": rate(load, logging.port, plan.seconds),
            }
            taken = medians(measurements, plan)
    return over_one("log", taken, "access log off", "off", {"access log on": ">= 0.9"})


def measure_resources(plan: Plan) -> list[Row]:
    """Starting beside a bare interpreter, memory at rest and after a million requests, time at rest."""
    source, (key, *_) = database(ANIMALS)
    with tempfile.TemporaryDirectory() as temporary:
        file = copy_of(source, Path(temporary))
        rows = _starts(file, plan.rounds)
        with servers.petstore("resources", file, access_log=True, settings={"console": "on"}) as shop:
            time.sleep(_SETTLE_SECONDS)
            rows.append(Row("memory", "at rest, all processes", shop.pss_mib(), "MiB"))
            idle = _idle(shop)
            load = Load((f"{LIST} {key}",))
            peak = run(load, shop.port, plan.seconds).per_second
            run(load, shop.port, REQUESTS / peak)
            rows.append(Row("memory", "after a million requests", shop.pss_mib(), "MiB"))
    return [*rows, idle]


def _starts(file: Path, rounds: int) -> list[Row]:
    def serve() -> float:
        with servers.petstore("start", file) as shop:
            return shop.started_seconds

    measurements = {
        "python -c pass": lambda: _seconds_of(sys.executable, "-c", "pass"),
        "petstore --help": lambda: _seconds_of(PROGRAM, "--help"),
        "petstore serve, to the first answer": serve,
    }
    taken = medians(measurements, Plan(rounds=rounds))
    base = taken["python -c pass"]
    return [
        Row("start", name, value * 1_000, "ms", value / base, "bare Python") for name, value in taken.items()
    ]


def _seconds_of(*command: str | Path) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def _idle(shop: servers.Server) -> Row:
    before = shop.cpu_seconds()
    time.sleep(_IDLE_SECONDS)
    spent = (shop.cpu_seconds() - before) / _IDLE_SECONDS
    return Row("idle", "processor time of all processes", spent * 1_000, "ms a second")
