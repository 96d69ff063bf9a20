"""What the numbers were measured on, and who runs on which core."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def available() -> list[int]:
    """The cores that this process may use, before any `pin`."""
    return sorted(os.sched_getaffinity(0))


def cores() -> tuple[set[int], set[int]]:
    """Cores of the server and of the load; the same one where there is only one."""
    return {available()[0]}, {available()[:2][-1]}


def commit() -> str:
    """The commit that is measured, marked when the tree differs from it."""
    ask = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    try:
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def describe() -> dict[str, str]:
    """Date, commit and machine."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "machine": f"{len(available())} cores, {model}",
        "python": platform.python_version(),
    }
