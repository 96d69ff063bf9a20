"""What to put before a command so that it lacks the rights of root, or has mounts of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest


def without_rights() -> list[str]:
    """What to put before a command so that the modes of files hold for it. Root keeps its number alone."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("root needs setpriv to give up its rights")
    return ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]


def with_mount(*arguments: str | Path) -> list[str]:
    """What to put before a command so that it, and nothing else, sees `mount ARGUMENTS`."""
    mount = " ".join(["mount", *map(str, arguments)])
    prefix = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    if not works([*prefix, "true"]):
        pytest.skip("nothing can be mounted here")
    return prefix


def works(command: Sequence[str]) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0
