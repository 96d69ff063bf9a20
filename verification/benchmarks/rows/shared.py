"""Replicas over PostgreSQL and Valkey on the same machine: requests, and processor time by part.

Both servers run as `make cluster` starts them: over TCP, with passwords, every commit on the disk. They share
the load's core; a single worker has the other one for itself, several have both.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import msgspec

from petstore import config
from petstore.wiring import administration
from tools.cluster import parts
from tools.servers.petstore import PROGRAM
from tools.servers.ports import free_port
from verification.benchmarks import servers
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan, medians
from verification.benchmarks.load.closed import Load, rate, run
from verification.benchmarks.machine import cores
from verification.benchmarks.report import Row
from verification.benchmarks.rows.reads import ANIMALS, LIST, page_bytes, random_pages
from verification.benchmarks.rows.writes import post

_TARGET = ">= 0.25 for each worker"


class Backing(msgspec.Struct):
    """PostgreSQL and Valkey, and a key for the store that they hold; `programs` are those of PostgreSQL."""

    settings: dict[str, str]
    programs: Path
    postgres: servers.Server
    valkey: servers.Server
    key: str

    def replica(
        self, folder: Path, workers: int, program: Path = PROGRAM
    ) -> AbstractContextManager[servers.Server]:
        """A replica as an operator starts it, of so many workers; `program` as in servers.petstore."""
        settings = self.settings | {"workers": str(workers)}
        on = cores()[0] if workers == 1 else cores()[0] | cores()[1]
        name = f"replica-of-{workers}-{program.parts[-4]}"
        return servers.petstore(name, folder / "unused", settings=settings, on=on, program=program)


@contextmanager
def backing(folder: Path) -> Iterator[Backing]:
    """Both servers, with the animals of the embedded measurements."""
    folder.chmod(0o755)  # PostgreSQL does not run as root
    source, (key, *_) = database(ANIMALS)
    postgres = parts.Postgres(folder, free_port())
    valkey = parts.Valkey(folder, free_port())
    with ExitStack() as started:
        for part in (postgres, valkey):
            part.start()
            started.callback(part.stop)
            os.sched_setaffinity(part.child.pid, cores()[1])
        urls = [part.url_file.read_text(encoding="utf-8") for part in (postgres, valkey)]
        administration.copy_database(
            config.load({}), f"sqlite:///{copy_of(source, folder)}", urls[0], lambda _: None, lambda _: None
        )
        yield Backing(
            {"database_url": urls[0], "valkey_url": urls[1]},
            postgres.programs,
            servers.Server("PostgreSQL", postgres.port, postgres.child.pid, 0),
            servers.Server("Valkey", valkey.port, valkey.child.pid, 0),
            key,
        )


def measure(plan: Plan) -> list[Row]:
    """Requests, and what one of them costs."""
    source, (key, *_) = database(ANIMALS)
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as started:
        folder = Path(temporary)
        shared = started.enter_context(backing(folder))
        shop = started.enter_context(servers.petstore("embedded", copy_of(source, folder)))
        top = started.enter_context(servers.ceiling(folder, page_bytes(shop.port, key)))
        one = started.enter_context(shared.replica(folder, 1))
        two = started.enter_context(shared.replica(folder, 2))
        rows = _requests(shared, {"ceiling": top, "one": one, "two": two}, plan)
        return rows + _costs(shared, {"ceiling": top, "embedded": shop, "shared": one}, plan)


def _requests(shared: Backing, at: dict[str, servers.Server], plan: Plan) -> list[Row]:
    def load(server: servers.Server, *lines: str) -> Callable[[], float]:
        return rate(Load(lines), server.port, plan.seconds)

    line = f"{LIST} {shared.key}"
    taken = medians(
        {
            "ceiling: plaintext": load(at["ceiling"], "/"),
            "list, unchanged data, one worker": load(at["one"], line),
            "list, unchanged data, two workers": load(at["two"], line),
            "list, random cursors, one worker": load(at["one"], *random_pages(shared.key)),
            "POST, 1 connection, one worker": post(at["one"].port, shared.key, 1, plan.seconds),
            "POST, 64 connections, one worker": post(at["one"].port, shared.key, 64, plan.seconds),
        },
        plan,
    )
    base = taken["ceiling: plaintext"]
    return [
        Row(
            "shared",
            name,
            value,
            "requests/s",
            value / base / (2 if "two" in name else 1),
            "ceiling, for each worker",
            _TARGET if "unchanged" in name else "",
        )
        for name, value in taken.items()
    ]


def _costs(shared: Backing, at: dict[str, servers.Server], plan: Plan) -> list[Row]:
    """Processor time of one request, by part: what one road costs more than the one before."""
    line = f"{LIST} {shared.key}"
    random = Load(random_pages(shared.key))

    def cost(load: Load, server: servers.Server, of: servers.Server | None = None) -> Callable[[], float]:
        """Microseconds of `of` for each request to `server`."""
        measured = of or server

        def measure_once() -> float:
            before = measured.cpu_seconds()
            outcome = run(load, server.port, plan.seconds)
            return (measured.cpu_seconds() - before) / (outcome.per_second * outcome.seconds) * 1e6

        return measure_once

    listing = Load((line,))
    taken = medians(
        {
            "http": cost(Load(("/",)), at["ceiling"]),
            "embedded": cost(listing, at["embedded"]),
            "shared": cost(listing, at["shared"]),
            "random": cost(random, at["shared"]),
            "valkey": cost(listing, at["shared"], shared.valkey),
            "postgres": cost(random, at["shared"], shared.postgres),
        },
        plan,
    )
    parts_of = {
        "HTTP server and two sends": taken["http"],
        "gate, decision and reply": taken["embedded"] - taken["http"],
        "Valkey instead of memory, in the replica": taken["shared"] - taken["embedded"],
        "PostgreSQL for a page that is not kept, in the replica": taken["random"] - taken["shared"],
        "Valkey's own process": taken["valkey"],
        "PostgreSQL's own processes, for such a page": taken["postgres"],
    }
    return [
        Row("CPU", name, value, "us a request", value / taken["shared"], "a list over Valkey")
        for name, value in parts_of.items()
    ]
