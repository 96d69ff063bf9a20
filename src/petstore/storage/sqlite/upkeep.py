"""Upkeep of the file for operators: check, online backup, restore, and the lock of the one server."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

import apsw
import msgspec

from petstore.errors import Conflict, NotFound, StoreUnavailable
from petstore.storage import migrations
from petstore.storage.sqlite import connection as database

_PAGES_A_STEP = 1_000


class CheckReport(msgspec.Struct, frozen=True):
    """What `db check` found: `problems` is empty for a sound database."""

    schema_version: int
    pets: int
    accounts: int
    keys: int
    problems: list[str]


def migrate(path: str, busy_timeout_ms: int) -> list[str]:
    """Bring the schema up to date; the names of the steps that ran."""
    return database.migrate(path, busy_timeout_ms)


def check(path: str, busy_timeout_ms: int) -> CheckReport:
    """Read every page and index of the file and say what is wrong. Safe beside a running server."""
    if not Path(path).exists():
        raise NotFound(f"There is no database {path}; `petstore db migrate` creates it.")
    try:
        return _check(path, busy_timeout_ms)
    except StoreUnavailable as error:
        if not isinstance(error.__cause__, apsw.CorruptError | apsw.NotADBError):
            raise
        # Too damaged to be read at all: that is what a check is asked for, not an outage.
        return CheckReport(0, 0, 0, 0, [error.message.removeprefix("The store failed: ").rstrip(".")])


def _check(path: str, busy_timeout_ms: int) -> CheckReport:
    reader = database.open_reader(path, busy_timeout_ms)
    try:
        with database.translated():
            findings = [row[0] for row in reader.execute("PRAGMA integrity_check")]
            problems = [finding for finding in findings if finding != "ok"]
            problems += [
                f"{table}: row {row} refers to a missing row of {parent}"
                for table, row, parent, _ in reader.execute("PRAGMA foreign_key_check")
            ]
            version = database.schema_version(reader)
            if version == 0:
                return CheckReport(0, 0, 0, 0, [*problems, "the schema was never created"])
            pets, accounts, keys = (
                reader.execute(f"SELECT count(*) FROM {table}").get
                for table in ("pets", "accounts", "api_keys")
            )
            return CheckReport(version, pets, accounts, keys, problems)
    finally:
        reader.close()


def backup(path: str, target: str, busy_timeout_ms: int) -> CheckReport:
    """Copy the database to a new file while it is in use; the copy appears whole or not at all."""
    if not Path(path).exists():
        raise NotFound(f"There is no database {path}; nothing was backed up.")
    if Path(target).exists():
        raise Conflict(f"{target} exists already; a backup never overwrites a file.")
    _copy(path, target, busy_timeout_ms)
    return check(target, busy_timeout_ms)


def restore(path: str, source: str, busy_timeout_ms: int) -> CheckReport:
    """Put a backup in the database's place. Refused while a server uses it, and for a damaged backup.

    The database that was there is kept beside it, as `<name>.before-restore`.
    """
    report = check(source, busy_timeout_ms)
    if report.problems:
        raise Conflict(f"{source} is damaged and was not restored: {report.problems[0]}.")
    migrations.pending(migrations.load("petstore.storage.sqlite.migrations"), report.schema_version)
    lock = lock_for_serving(path)
    try:
        if Path(path).exists():
            kept = f"{path}.before-restore"
            Path(kept).unlink(missing_ok=True)
            _copy(path, kept, busy_timeout_ms)
        _copy(source, path, busy_timeout_ms)
    finally:
        lock.close()
    return report


def _copy(source: str, target: str, busy_timeout_ms: int) -> None:
    """A whole, synced copy under a temporary name, then put in place in one step."""
    partial = f"{target}.partial"
    Path(partial).unlink(missing_ok=True)
    reader = database.open_reader(source, busy_timeout_ms)
    try:
        with database.translated():
            # Within a read transaction it is a copy of one moment; else every write would start it anew.
            reader.execute("BEGIN; SELECT 1 FROM sqlite_schema").fetchall()
            copy = apsw.Connection(partial)
            with copy.backup("main", reader, "main") as progress:
                while not progress.done:
                    progress.step(_PAGES_A_STEP)
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.close()
    finally:
        reader.close()
    with Path(partial).open("rb") as finished:
        os.fsync(finished.fileno())
    for leftover in (f"{target}-wal", f"{target}-shm"):
        Path(leftover).unlink(missing_ok=True)
    Path(partial).replace(target)
    directory = os.open(Path(target).parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def lock_for_serving(path: str) -> IO[str]:
    """Hold the database for one server until the returned file is closed.

    Raises Conflict when another server holds it: the counters of the limits live in the one process.
    """
    lock = Path(f"{path}.lock").open("a+", encoding="ascii")  # noqa: SIM115  held as long as the server runs
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise Conflict(
            f"Another server (process {holder}) is using {path}; stop it first, or name another database"
            " with PETSTORE_DATABASE_URL."
        ) from error
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock
