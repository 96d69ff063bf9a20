"""A stock list that is imported beside a serving process, and imports that are killed on the way."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path

from tests.support.backends import execute_at
from tests.support.report import Report
from tests.support.server import issue_key, running_server
from tests.support.waiting import pause
from tools.servers.petstore import PROGRAM, environment

ROWS = 4_000
_COUNTS = (
    "SELECT (SELECT count(*) FROM pets), (SELECT count(*) FROM pet_sources),"
    " (SELECT count(*) FROM journal WHERE subject = 'pet' AND action = 'added'),"
    " (SELECT count(*) FROM journal WHERE subject = 'pet' AND action = 'changed')"
)


def write_list(folder: Path, name: str) -> Path:
    """A list of animals with this name and a number."""
    path = folder / "stock.csv"
    rows = "".join(f"K{number},{name} {number},{number % 9},pending\n" for number in range(ROWS))
    path.write_text(f"sku,name,categoryId,status\n{rows}")
    return path


def start_import(path: Path, url: str) -> subprocess.Popen[bytes]:
    command = [str(PROGRAM), "pets", "import", str(path), "--source-key", "sku", "--json"]
    return subprocess.Popen(
        command,
        env=environment({"database_url": url}),
        cwd=path.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(importing: subprocess.Popen[bytes]) -> dict[str, int]:
    """The summary of an import, which has to end well."""
    out, err = importing.communicate(timeout=60)
    assert importing.returncode == 0, err
    summary: dict[str, int] = json.loads(out)
    return summary


def play(url: str, folder: Path, report: Report, seed: int, kills: int) -> None:
    """Kill `kills` imports of a list, and as many of its next state, at random moments; then let one of each
    go to its end. What is there at any time, and what a server shows, is all of a list or nothing."""
    key = issue_key(url)
    with running_server(folder, database_url=url) as server:
        chance = random.Random(seed)
        before, shown = (0, 0, 0, 0), ""
        for name, after in (("old", (ROWS, ROWS, ROWS, 0)), ("new", (ROWS, ROWS, ROWS, ROWS))):
            path = write_list(folder, name)
            for kill in range(kills + 1):
                is_killed = kill < kills
                importing = start_import(path, url)
                seen = _seen_while(importing, url, chance.uniform(0.3, 1.6) if is_killed else 60)
                if is_killed:
                    importing.kill()
                    importing.communicate()
                    report.counts["imports killed"] += 1
                else:
                    finish(importing)
                left = _counts(url)
                if odd := {*seen, left} - {before, after}:
                    report.fault(f"animals, source keys, additions, changes: {odd}, on the way to {after}")
                if not is_killed and left != after:
                    report.fault(f"the import of {name} ended, and left {left}")
                page = server.request("GET", "/v1/pets?limit=1", key=key).json()
                first = page[0]["name"] if page else ""
                if first != (f"{name} 0" if left == after else shown):
                    report.fault(f"the first page shows {first!r} where there is {left}")
            before, shown = after, f"{name} 0"


def _seen_while(importing: subprocess.Popen[bytes], url: str, seconds: float) -> set[tuple[int, ...]]:
    """What is there again and again, until the import has ended or so long: a kill would leave that."""
    ends = time.monotonic() + seconds
    seen = set()
    while importing.poll() is None and time.monotonic() < ends:
        seen.add(_counts(url))
        pause(0.002)
    return seen


def _counts(url: str) -> tuple[int, ...]:
    """Animals, source keys, and entries of additions and changes, in one state of the database."""
    return execute_at(url, _COUNTS)[0]
