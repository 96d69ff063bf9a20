"""Runs a sample of the documents in its own language: JavaScript by Node.js, shell by bash, Python.

Each returns what it printed, and fails with everything that it said unless it ended well.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.machine import program

_SECONDS = 30.0
# A sample may not inherit a setting of this machine, such as a proxy or a key.
_KEPT = re.compile(r"PATH|COVERAGE_.*")


def run_node(source: str, env: Mapping[str, str], *, folder: Path | None = None) -> str:
    """JavaScript as a module, so that it may `await` at the top. Skips where there is no node."""
    return _run([program("node"), "--input-type=module", "-"], source, env, folder)


def run_bash(source: str, env: Mapping[str, str], *, folder: Path | None = None) -> str:
    """Shell with curl; it ends at the first command that fails. Skips where there is no bash or curl."""
    program("curl")
    return _run([program("bash"), "--norc", "-euo", "pipefail", "-s"], source, env, folder)


def run_python(source: str, env: Mapping[str, str], *, folder: Path | None = None) -> str:
    """Python, with the packages of the development environment: `petstore_client`, `requests`."""
    return _run([sys.executable, "-"], source, env, folder)


def _run(command: list[str | Path], source: str, env: Mapping[str, str], folder: Path | None) -> str:
    kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=kept | {"LC_ALL": "C.UTF-8"} | dict(env),
        input=source,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"it ended with {done.returncode}:\n{done.stderr}{done.stdout}"
    return done.stdout
