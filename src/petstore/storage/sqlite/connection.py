"""Opens connections to the file and translates the driver's errors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import apsw

from petstore.core.clock import SystemClock
from petstore.core.errors import StoreDamaged, StoreFull, StoreReadOnly, StoreUnavailable
from petstore.storage.failures import failure
from petstore.storage.sqlite import files

_READ_CACHE_KIB = 16_384
_MMAP_BYTES = 1 << 30
# The log has a few MiB, unless somebody reads for long or imports; then it would stay as large as it was.
LOG_KEPT_BYTES = 16 << 20
_CAUSES: dict[type[Exception], tuple[str, type[StoreUnavailable]]] = {
    apsw.FullError: ("the disk, or the range of identifiers, is full", StoreFull),
    apsw.CorruptError: ("the database is damaged", StoreDamaged),
    apsw.NotADBError: ("the file is not a database", StoreDamaged),
    apsw.ReadOnlyError: ("the database is read-only", StoreReadOnly),
    apsw.CantOpenError: ("the database can't be opened", StoreUnavailable),
    apsw.IOError: ("reading or writing the disk failed", StoreUnavailable),
}


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's errors into the store's; other errors pass unchanged."""
    try:
        yield
    except apsw.Error as error:
        raise translate(error) from error


def translate(error: Exception, outcome: str = "") -> Exception:
    """The store's error for one of the driver's, without the driver's text, which may quote data.

    `outcome` continues the sentence with the fate of the write.
    """
    if not isinstance(error, apsw.Error):
        return error
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return StoreUnavailable("The store is busy with other writes; try again shortly.")
    cause, kind = _CAUSES.get(type(error), ("it could not carry out the operation", StoreUnavailable))
    if isinstance(error, apsw.SQLError) and str(error) == "unsupported file format":  # in its header
        cause, kind = _CAUSES[apsw.NotADBError]
    # Opening a database on a full disk fails when SQLite makes the log's index.
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
        cause, kind = _CAUSES[apsw.FullError]
    return failure(cause, outcome, kind)


def open_writer(path: str, busy_timeout_ms: int) -> apsw.Connection:
    """The connection that may write. Every commit is on the disk before it returns (synchronous=FULL)."""
    with contextlib.suppress(OSError):  # SQLite reports what prevents it
        files.make(str(Path(path).resolve()))
    files.close_to_others(path)
    with translated():
        connection = apsw.Connection(path)
        connection.set_busy_timeout(busy_timeout_ms)
        _use_log(connection, busy_timeout_ms)
        connection.execute(f"PRAGMA journal_size_limit = {LOG_KEPT_BYTES}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        return connection


def _use_log(connection: apsw.Connection, busy_timeout_ms: int) -> None:
    """Switch the file to a write-ahead log, which stays so."""
    monotonic = SystemClock().monotonic
    deadline = monotonic() + busy_timeout_ms / 1_000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except apsw.BusyError:
            if monotonic() >= deadline:  # the pragma has waited for a reader
                raise
            # Another process is switching. The pragma does not wait for a writer, BEGIN does.
            connection.execute("BEGIN IMMEDIATE; ROLLBACK")


def open_reader(path: str, busy_timeout_ms: int) -> apsw.Connection:
    """The connection for reads, which can't write."""
    try:
        with translated():
            connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
            connection.set_busy_timeout(busy_timeout_ms)
            # SQLite would else plan a query again when its bound values change.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            connection.execute("PRAGMA query_only = ON")
            connection.execute(f"PRAGMA cache_size = -{_READ_CACHE_KIB}")
            connection.execute(f"PRAGMA mmap_size = {_MMAP_BYTES}")
            return connection
    except StoreUnavailable as error:
        is_refused = isinstance(error.__cause__, apsw.CantOpenError)
        if is_refused and not os.access(Path(path).resolve().parent, os.W_OK):  # for the index of the log
            raise translate(apsw.ReadOnlyError()) from error
        raise


@contextlib.contextmanager
def closing_reader(reader: apsw.Connection) -> Iterator[apsw.Connection]:
    """Close it at the end, and leave nothing beside a database that no process uses."""
    path = reader.filename
    try:
        yield reader
    finally:
        reader.close()
        remove_empty_log(path)


def remove_empty_log(path: str) -> None:
    """Have SQLite remove its files beside a database that no process uses. Connections for reads make them
    and can't remove them, and the service might not be allowed to write those of another user.

    A log with something in it stays: its content would move into the file.
    """
    with contextlib.suppress(OSError, apsw.Error):  # there may be none
        if Path(f"{Path(path).resolve()}-wal").stat().st_size == 0:
            with contextlib.closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
                connection.execute("PRAGMA user_version").fetchall()


def empty_log(path: str) -> None:
    """Have SQLite move the log into the file, unless somebody reads from it just now. SQLite itself does so
    where the last connection is closed that may write, and others may be open for reads."""
    with (
        contextlib.suppress(apsw.Error),
        contextlib.closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)) as connection,
    ):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
