"""Other people's tools, as `tools/consumers` installs them beside tests/consumers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.machine import absent
from tests.support.server import Server

NODE_MODULES = Path(__file__).parents[1] / "consumers" / "node_modules"
_ENVIRONMENT = Path(sys.prefix, "consumers")
_SECONDS = 150.0
# They are to send nothing home and to ask nobody for a newer version.
_QUIET = {
    "CI": "true",
    "NO_COLOR": "1",
    "NO_UPDATE_NOTIFIER": "1",
    "REDOCLY_TELEMETRY": "off",
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    # They end within seconds: what Java gains by compiling well it would not get back.
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def node_module(name: str) -> Path:
    """The folder of a package from npm; where it is absent the test skips, or fails when CI is set."""
    folder = NODE_MODULES / name
    return folder if folder.is_dir() else absent(f"{name} from npm (tools/consumers installs it)")


def node_program(name: str) -> Path:
    """A program from npm, by the name of its command."""
    program = NODE_MODULES / ".bin" / name
    return program if program.exists() else absent(f"{name} from npm (tools/consumers installs it)")


def python_program(name: str) -> Path:
    """A program of the Python environment that the tools have for themselves; `python` is its interpreter."""
    program = _ENVIRONMENT / "bin" / name
    return program if program.exists() else absent(f"{name} from PyPI (tools/consumers installs it)")


def run_tool(
    command: Sequence[str | Path], folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """What a tool printed, run in a folder of its own with a terminal that has nobody at it."""
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | _QUIET | {"HOME": str(folder)} | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def save_contract(server: Server, folder: Path) -> Path:
    """Download the document as a consumer does."""
    answer = server.request("GET", "/openapi.json", key="")
    assert answer.status == 200
    path = folder / "openapi.json"
    path.write_bytes(answer.body)
    return path
