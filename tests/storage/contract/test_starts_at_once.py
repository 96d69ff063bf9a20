"""Several programs bring the same new database up to date at the same moment."""

from __future__ import annotations

import subprocess
import sys

from petstore.storage.backend import backend_for
from tests.architecture.sources import ROOT
from tests.support.schemas import at_once, migrate

_CODE = (
    "import sys; from tests.support.schemas import migrate; print('ready', flush=True);"
    " sys.stdin.read(1); print(len(migrate(sys.argv[1], 10_000)))"
)


def test_threads_and_a_process(url: str) -> None:
    """Eight with connections of their own, and a process that has loaded everything and waits for a word:
    each step runs once, none fails."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", _CODE, url]
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.stdin is not None
        process.stdin.write("!")
        process.stdin.flush()
        ran = sum(map(len, at_once(lambda: migrate(url, 10_000))))
        output, _ = process.communicate(timeout=30)
    assert (ran + int(output), process.returncode) == (len(backend_for(url).schema().known), 0)
