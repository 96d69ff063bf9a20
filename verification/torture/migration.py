"""The migration from 1.0.0 with a million animals and 100,000 changes of status, and the copy to PostgreSQL
after it: nothing is lost. Additions go on meanwhile, and the longest wait of one is told.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from functools import partial

import apsw
import asyncpg

from petstore.storage.backend import sqlite_path
from tests.support.backends import execute_at
from tests.support.carryover import faults, fill_first_release
from tests.support.loops import working
from tests.support.postgres import fresh_database
from tests.support.report import Report
from tools.servers.petstore import PROGRAM, environment

_ANIMALS, _CHANGES = 1_000_000, 100_000
_ADD = "INSERT INTO pets (name, category_id, status) VALUES ('added ' || {}, 1, 'sold')"


def run(report: Report, seed: int, seconds: float) -> None:
    """One migration of each store, however long it takes."""
    with tempfile.TemporaryDirectory() as folder, fresh_database() as postgres, fresh_database() as target:
        sqlite = f"sqlite:///{folder}/petstore.db"
        for name, url in (("SQLite", sqlite), ("PostgreSQL", postgres)):
            fill_first_release(url, _ANIMALS, _CHANGES)
            added = _migrate(report, name, url, folder)
            for fault in faults(url, _ANIMALS + added, _CHANGES):
                report.fault(f"{name}: {fault}")
        began = time.monotonic()
        done = _petstore(folder, sqlite, "db", "copy", sqlite, target)[0]
        report.took("copy to PostgreSQL", time.monotonic() - began)
        if done != 0:
            report.fault(f"db copy ended with {done}")
        added = execute_at(sqlite, "SELECT count(*) FROM pets")[0][0] - _ANIMALS
        for fault in faults(target, _ANIMALS + added, _CHANGES):
            report.fault(f"after the copy: {fault}")


def _migrate(report: Report, name: str, url: str, folder: str) -> int:
    """Migrate while animals are added; how many were."""
    waits = [0.0]
    with working(partial(_add, url, waits)):
        began = time.monotonic()
        code, memory = _petstore(folder, url, "db", "migrate")
        report.took(name, time.monotonic() - began)
    report.took(f"{name}, wait of an addition", max(waits))
    report.counts[f"MiB of memory, {name}"] = memory
    if code != 0:
        report.fault(f"{name}: petstore db migrate ended with {code}")
    return len(waits) - 1


def _petstore(folder: str, url: str, *words: str) -> tuple[int, int]:
    """Run a command: its exit code, and its largest memory in MiB."""
    settings = environment({"database_url": url, "busy_timeout": "60s"})
    child = subprocess.Popen([PROGRAM, *words], cwd=folder, env=settings, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, used.ru_maxrss // 1024


def _add(url: str, waits: list[float], ended: threading.Event) -> None:
    """What a program of 1.0.0 does meanwhile; how long each addition took."""
    if url.startswith("sqlite"):
        file = apsw.Connection(sqlite_path(url))
        file.set_busy_timeout(60_000)
        while not ended.wait(0.01):
            began = time.monotonic()
            file.execute(_ADD.format(len(waits)))
            waits.append(time.monotonic() - began)
        file.close()
        return

    async def work() -> None:
        connection = await asyncpg.connect(url)
        while not ended.is_set():
            began = time.monotonic()
            with suppress(asyncpg.DeadlockDetectedError):
                await connection.execute(_ADD.format(len(waits)))
                waits.append(time.monotonic() - began)
            await asyncio.to_thread(ended.wait, 0.01)
        await connection.close()

    asyncio.run(work())
