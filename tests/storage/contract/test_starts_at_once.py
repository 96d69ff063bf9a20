"""Several programs bring the same new database up to date at the same moment."""

from __future__ import annotations

import subprocess
import sys

from petstore.storage.backend import backend_for
from tests.architecture.sources import ROOT
from tests.support.schemas import at_once, migrate

_PROCESSES = 3
_CODE = (
    "import sys; from tests.support.schemas import migrate; print('ready', flush=True);"
    " sys.stdin.read(1); print(len(migrate(sys.argv[1], 10_000)))"
)


def steps(url: str) -> int:
    """How many this program knows."""
    return len(backend_for(url).schema().known)


def test_threads(url: str) -> None:
    """Eight with connections of their own: each step runs once, none fails."""
    assert sum(map(len, at_once(lambda: migrate(url, 10_000)))) == steps(url)


def test_processes(url: str) -> None:
    """Three that have loaded everything and wait for a character: together they run each step once."""
    command = [sys.executable, "-c", _CODE, url]
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for _ in range(_PROCESSES)
    ]
    for process in processes:
        assert process.stdout is not None
        process.stdout.readline()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("!")
        process.stdin.flush()
    answers = [process.communicate(timeout=30) for process in processes]
    assert [errors for _, errors in answers] == [""] * _PROCESSES
    assert sum(int(output) for output, _ in answers) == steps(url)
