"""The lock of the one server. It is on the database file itself, so all names of the file share it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from petstore.core.errors import OperatorError
from petstore.storage.sqlite import files

# A byte far after the bytes that SQLite locks, which are at 1 GiB.
_BYTE = 1 << 62
_REMEDY = "stop it first, or name another database with PETSTORE_DATABASE_URL."


def lock_for_serving(path: str, *, create: bool = False) -> contextlib.ExitStack:
    """Hold the database for one server until the returned stack is closed.

    `create` makes a missing file, empty, to lock it. Raises OperatorError when another server holds it: the
    counters are in the memory of one process.
    """
    real = Path(path).resolve()
    # 1.0.0 only uses the lock file beside the name in its URL.
    spelled = Path(path).parent.resolve() / Path(path).name
    with contextlib.ExitStack() as held:
        held.enter_context(_held_beside(path, real))
        if spelled != real:
            with contextlib.suppress(OSError):  # the directory of a symlink may be read-only
                held.enter_context(_held_beside(path, spelled))
        if create:
            files.make(str(real))
        if real.exists():
            held.enter_context(_held(path, real))
        return held.pop_all()


@contextlib.contextmanager
def _held_beside(path: str, name: Path) -> Iterator[None]:
    """The lock file beside `name`, which holds the number of the process."""
    lock_file = f"{name}.lock"
    files.make(lock_file, like=str(name))
    with Path(lock_file).open("r+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = lock.read().strip() or "unknown"
            raise OperatorError(f"Another process ({holder}) is using {path}; {_REMEDY}") from error
        with contextlib.suppress(OSError):  # on a full disk the number is missing
            os.ftruncate(lock.fileno(), 0)
            os.pwrite(lock.fileno(), str(os.getpid()).encode(), 0)
        yield


@contextlib.contextmanager
def _held(path: str, real: Path) -> Iterator[None]:
    """A lock on the file itself. It belongs to the descriptor, also in a process that inherits it."""
    database = os.open(real, os.O_RDWR | os.O_CLOEXEC)
    try:
        _lock(database, path)
        yield
    finally:
        os.close(database)


def _lock(database: int, path: str) -> None:
    wanted = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, _BYTE, 1, 0)
    try:
        fcntl.fcntl(database, fcntl.F_OFD_SETLK, wanted)
    except BlockingIOError as error:
        raise OperatorError(f"Another process is using {path} under another name; {_REMEDY}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # a system without such locks has the lock files
            raise
