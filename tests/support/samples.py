"""Runs a sample of the documents in its own language: JavaScript by Node.js, shell by bash, Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.machine import program

_SECONDS = 30.0
# A sample may not inherit a setting of this machine, such as a proxy or a key.
_KEPT = re.compile(r"PATH|COVERAGE_.*")


@dataclass(frozen=True)
class Finished:
    """How a sample ended, and what it printed."""

    code: int
    output: str
    errors: str

    def succeeded(self) -> str:
        """The output of a sample; fails with everything that it said unless it ended well."""
        assert self.code == 0, f"it ended with {self.code}:\n{self.errors}{self.output}"
        return self.output


def run_node(source: str, env: Mapping[str, str], *, folder: Path | None = None) -> Finished:
    """JavaScript as a module, so that it may `await` at the top. Skips where there is no node."""
    return _run([program("node"), "--input-type=module", "-"], source, env, folder)


def run_bash(source: str, env: Mapping[str, str], *, folder: Path | None = None) -> Finished:
    """Shell with curl; it ends at the first command that fails. Skips where there is no bash or curl."""
    program("curl")
    return _run([program("bash"), "--norc", "-euo", "pipefail", "-s"], source, env, folder)


def run_python(source: str, env: Mapping[str, str], *, folder: Path | None = None) -> Finished:
    """Python, with the packages of the development environment: `petstore_client`, `requests`."""
    return _run([sys.executable, "-"], source, env, folder)


def _run(command: list[str | Path], source: str, env: Mapping[str, str], folder: Path | None) -> Finished:
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
    return Finished(done.returncode, done.stdout, done.stderr)
