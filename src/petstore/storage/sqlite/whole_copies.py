"""A whole copy of a database, made under a temporary name beside the place where it goes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import apsw

from petstore.core.errors import OperatorError
from petstore.storage.sqlite import files
from petstore.storage.sqlite.connection import closing_reader, open_reader, translated

_PAGES_A_STEP = 1_000
# The files that SQLite may make beside a database.
SIDE_FILES = ("-wal", "-shm", "-journal")


@contextlib.contextmanager
def whole_copy(source: str, target: str, busy_timeout_ms: int, like: str | None = None) -> Iterator[str]:
    """Yield the name of a synced copy beside `target`. A file that has this name at the end is removed.

    A copy that root makes gets the owner of `like`. Raises OSError when it can't be written,
    OperatorError when another process writes it, StoreUnavailable when the source can't be read.
    """
    partial = Path(f"{target}.partial")
    if partial.exists() and partial.samefile(source):
        raise OperatorError(f"{source} has the name of an unfinished copy; give it another one.")
    reader = open_reader(source, busy_timeout_ms)
    with closing_reader(reader), _held(partial, target, like) as file:
        with translated():
            # In a read transaction the copy is one snapshot; without one every write would restart it.
            reader.execute("BEGIN; SELECT 1 FROM sqlite_schema").fetchall()
            _fill(partial, reader, target)
        os.fsync(file)
        yield str(partial)


@contextlib.contextmanager
def _held(partial: Path, target: str, like: str | None) -> Iterator[int]:
    """An empty file of that name, for one process at a time."""
    file = _hold(partial, target, like)
    try:
        files.remove(str(partial), *SIDE_FILES)  # left by a killed process; SQLite would roll a journal back
        os.ftruncate(file, 0)
        yield file
    finally:
        if _is_named(file, partial):
            files.remove(str(partial), "", *SIDE_FILES)
        os.close(file)


def _hold(partial: Path, target: str, like: str | None) -> int:
    while True:
        files.make(str(partial), like)
        file = os.open(partial, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(file)
            raise OperatorError(f"Another process is writing {target}; nothing was written.") from error
        if _is_named(file, partial):
            return file
        os.close(file)  # another process has just put it in place


def _is_named(file: int, path: Path) -> bool:
    return path.exists() and os.path.samestat(os.fstat(file), path.stat())


def _fill(partial: Path, reader: apsw.Connection, target: str) -> None:
    copy = apsw.Connection(str(partial))
    try:
        with copy.backup("main", reader, "main") as progress:
            while not progress.done:
                progress.step(_PAGES_A_STEP)
        copy.execute("PRAGMA journal_mode = DELETE")
    except (apsw.FullError, apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError) as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_READ:  # the source's
            raise
        number = errno.ENOSPC if isinstance(error, apsw.FullError) else copy.system_errno or errno.EIO
        raise OSError(number, os.strerror(number), target) from error
    finally:
        copy.close()
