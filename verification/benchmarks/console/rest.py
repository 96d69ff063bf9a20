"""What `/v1` and an idle server pay for the console: on, off and, with a commit, before there was one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.support.backends import in_store
from tests.support.console_places import People, add_people
from tests.support.programs import from_history
from tools.servers.petstore import PROGRAM
from verification.benchmarks import servers
from verification.benchmarks.console.served import Reader
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan, medians_over_starts
from verification.benchmarks.load.closed import Load, rate, run
from verification.benchmarks.report import Row
from verification.benchmarks.rows.reads import ANIMALS, LIST, page_bytes

_CEILING = "ceiling: plaintext"
_WARM_UP_SECONDS = 1.0


def measure(plan: Plan, before: str | None) -> list[Row]:
    """The list over the ceiling, and memory at rest; each round starts every server anew."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        programs = {"console on": (PROGRAM, {"console": "on"}), "console off": (PROGRAM, {"console": "off"})}
        if before:
            programs[before] = (from_history(before, folder / "before"), {})

        def one_round(once: Plan) -> dict[str, float]:
            return _measure_once(once, folder, programs, before)

        taken = medians_over_starts(one_round, plan)
    base = taken[f"list, {_CEILING}"]
    least = taken[f"memory at rest, {before or 'console off'}"]
    rows = []
    for name, value in taken.items():
        if name.startswith("memory"):
            rows.append(Row("console", name, value, "MiB", target=f"<= {least + 15:.0f} MiB"))
        else:
            rows.append(Row("console", name, value, "requests/s", value / base, "ceiling"))
    return rows


def _look_at_pages(port: int, people: People) -> None:
    """Pages that need no data: what a first look at the console loads."""
    reader = Reader(port, people)
    for page in ("", "/pets", "/orders", "/stock", "/accounts", "/journal", "/service", "/people", "/me"):
        reader.get(f"/console{page}", plain=True)


def _measure_once(
    plan: Plan, folder: Path, programs: dict[str, tuple[Path, dict[str, str]]], before: str | None
) -> dict[str, float]:
    """Every row, with servers of its own that have answered for a while before."""
    source, (key, *_) = database(ANIMALS)
    listing = Load((f"{LIST} {key}",))
    memory: dict[str, float] = {}
    with ExitStack() as stack:
        files = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        started: dict[str, Callable[[], float]] = {}
        port = 0
        for name, (program, settings) in programs.items():
            path = copy_of(source, files)
            people = None if name == before else in_store(f"sqlite:///{path}", add_people)
            server = stack.enter_context(
                servers.petstore(f"server-{len(memory)}", path, settings=settings, program=program)
            )
            memory[f"memory at rest, {name}"] = server.pss_mib()
            if people is not None and settings.get("console") == "on":
                _look_at_pages(server.port, people)
                memory[f"memory after all pages, {name}"] = server.pss_mib()
            port = server.port
            started[f"list, {name}"] = rate(listing, port, plan.seconds)
            run(listing, port, _WARM_UP_SECONDS)
        top = stack.enter_context(servers.ceiling(files, page_bytes(port, key)))
        run(Load(("/",)), top.port, _WARM_UP_SECONDS)
        started[f"list, {_CEILING}"] = rate(Load(("/",)), top.port, plan.seconds)
        return {name: measurement() for name, measurement in started.items()} | memory
