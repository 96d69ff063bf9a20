"""What the machine of a test has: settings of others, programs, which may be missing, memory for files."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from tools.servers.find import system_program

_SHARED_MEMORY = Path("/dev/shm")
_ROOM_BYTES = 1 << 30
_PROGRAMS = ("postgres", "pgbouncer", "valkey", "replicas")  # as parameters name them


def forget_settings() -> None:
    """Settings in the environment of a test run are forgotten: no test depends on them, nor a process
    that a test starts. What is for the tests themselves begins with TEST_."""
    for name in [name for name in os.environ if name.startswith("PETSTORE_")]:
        del os.environ[name]


def needing_others(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The tests whose parameter names another program, for where none may be used. To skip takes 15 ms
    each."""
    if not os.environ.get("TEST_ALONE"):
        return []
    return [item for item in items if isinstance(item, pytest.Function) and _names_another(item)]


def _names_another(item: pytest.Function) -> bool:
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any(name in each for each in given if isinstance(each, str) for name in _PROGRAMS)


def need(what: str) -> None:
    """Skip where a test may use no other program: `make test-fast` does without, so that it is quick."""
    if os.environ.get("TEST_ALONE"):
        pytest.skip(f"TEST_ALONE is set, and this needs {what}.")


def absent(what: str) -> NoReturn:
    """A program is missing: skip, or fail where every test has to run."""
    if os.environ.get("CI"):
        pytest.fail(f"There is no {what} here, and CI is set: every test has to run there.")
    pytest.skip(f"There is no {what} here.")


def memory() -> Path | None:
    """A folder in memory, where there is a gigabyte of it: nothing there waits for the disk."""
    roomy = _SHARED_MEMORY.is_dir() and shutil.disk_usage(_SHARED_MEMORY).free > _ROOM_BYTES
    return _SHARED_MEMORY if roomy else None


def short_folder(prefix: str, *, on_disk: bool = False) -> Path:
    """A new directory that everybody may read, removed when this process ends at the latest.

    Its name is short, since the path of a socket may have at most 107 bytes. It is in memory where there
    is room, unless `on_disk`.
    """
    path = Path(tempfile.mkdtemp(prefix=f"{prefix}-", dir=None if on_disk else memory()))
    path.chmod(0o755)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@contextmanager
def folder() -> Iterator[Path]:
    """A short folder for the length of a block."""
    path = short_folder("cl")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def program(name: str) -> Path:
    """An installed program, else the test skips."""
    need(name)
    return system_program(name) or absent(name)


def make_certificate(certificate: Path, key: Path, address: str) -> None:
    """A certificate that signed itself, for an address such as IP:127.0.0.1 or DNS:localhost."""
    kind = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")  # RSA takes half a second
    made = ("-x509", *kind, "-nodes", "-days", "2", "-subj", "/CN=petstore")
    files = ("-addext", f"subjectAltName={address}", "-keyout", key, "-out", certificate)
    command: list[str | Path] = [program("openssl"), "req", *made, *files]
    subprocess.run(command, check=True, capture_output=True, timeout=30)
