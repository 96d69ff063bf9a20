"""Upkeep of the file for operators: check, online backup, restore, and the lock of the one server."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import apsw
import msgspec

from petstore.clock import Clock
from petstore.errors import ConfigurationError, Conflict, NotFound, StoreUnavailable
from petstore.storage import migrations
from petstore.storage.reports import CheckReport
from petstore.storage.sqlite import connection as database

_PAGES_A_STEP = 1_000
_DAMAGE = (apsw.CorruptError, apsw.NotADBError)


class Restored(msgspec.Struct, frozen=True):
    """What the database holds after `db restore`, and where the one of before is kept, if there was one."""

    report: CheckReport
    kept: str | None


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
        if not isinstance(error.__cause__, _DAMAGE):
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
            try:
                migrations.pending(migrations.load(database.MIGRATIONS_PACKAGE), version)
            except ConfigurationError as error:  # it can't be served, and its tables may be others
                return CheckReport(version, 0, 0, 0, [*problems, str(error).rstrip(".")])
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


def restore(path: str, source: str, clock: Clock, busy_timeout_ms: int) -> Restored:
    """Put a backup in the database's place. Refused while a server uses it, and for a damaged backup.

    What was there is kept beside it under a name that was free. Other processes may have the database open:
    to them the restore is one transaction.
    """
    found = check(source, busy_timeout_ms)
    migrations.pending(migrations.load(database.MIGRATIONS_PACKAGE), found.schema_version)
    if found.problems:
        raise Conflict(f"{source} is damaged and was not restored: {found.problems[0]}.")
    if Path(path).exists() and Path(path).samefile(source):
        raise Conflict(f"{source} is the database itself; nothing was restored.")
    lock = lock_for_serving(path)
    try:
        if not Path(path).exists():
            _copy(source, path, busy_timeout_ms)
            return Restored(check(path, busy_timeout_ms), None)
        kept = _free_name(path, clock)
        if _is_readable(path, busy_timeout_ms):
            return Restored(_replace_content(path, source, kept, busy_timeout_ms), kept)
        for suffix in ("-wal", "-shm", ""):  # there is no content to replace, so the files go aside
            if Path(f"{path}{suffix}").exists():
                Path(f"{path}{suffix}").rename(f"{kept}{suffix}")
        _copy(source, path, busy_timeout_ms)
        return Restored(check(path, busy_timeout_ms), kept)
    finally:
        lock.close()


def _free_name(path: str, clock: Clock) -> str:
    """Where the database of before a restore is kept: no file has that name yet."""
    at = datetime.fromtimestamp(clock.now_ms() // 1_000, UTC)
    name = f"{path}.before-restore-{at:%Y%m%dT%H%M%SZ}"
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if not Path(each).exists())


def _is_readable(path: str, busy_timeout_ms: int) -> bool:
    """Whether the file is a database at all; damage in the middle of it is in nobody's way."""
    try:
        connection = database.open_writer(path, busy_timeout_ms)
        try:
            with database.translated():
                connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        finally:
            connection.close()
    except StoreUnavailable as error:
        if not isinstance(error.__cause__, _DAMAGE):
            raise
        return False
    return True


def _replace_content(path: str, source: str, kept: str, busy_timeout_ms: int) -> CheckReport:
    """Copy every page of `source` into the file at `path`, in one transaction, and the old ones to `kept`."""
    staged_path = _stage(source, path, busy_timeout_ms)
    with contextlib.ExitStack() as opened:
        opened.callback(Path(staged_path).unlink)
        staged = apsw.Connection(staged_path)
        opened.callback(staged.close)
        into = database.open_writer(path, busy_timeout_ms)
        opened.callback(into.close)
        with database.translated():
            staged.execute("PRAGMA journal_mode = MEMORY")
            page_size = into.execute("PRAGMA page_size").get
            if staged.execute("PRAGMA page_size").get != page_size:  # pages are copied as they are
                staged.execute(f"PRAGMA page_size = {page_size}")
                staged.execute("VACUUM")
            with into.backup("main", staged, "main") as progress:
                progress.step(0)  # takes the write lock: nobody commits any more until the end
                _copy(path, kept, busy_timeout_ms)
                _move_versions_past(path, staged, busy_timeout_ms)
                progress.step(-1)
        # Checked before the connection that may write is closed, since that one clears the log away.
        return check(path, busy_timeout_ms)


def _move_versions_past(path: str, staged: apsw.Connection, busy_timeout_ms: int) -> None:
    """What anybody keeps of the database at `path` must not look true after the restore."""
    reader = database.open_reader(path, busy_timeout_ms)
    try:
        catalogue, keyring = reader.execute("SELECT catalogue, keyring FROM versions").get or (0, 0)
    except (apsw.SQLError, *_DAMAGE):
        return  # without versions nobody could keep anything
    finally:
        reader.close()
    staged.execute(
        "UPDATE versions SET catalogue = max(catalogue, ?) + 1, keyring = max(keyring, ?) + 1",
        (catalogue, keyring),
    )


def _copy(source: str, target: str, busy_timeout_ms: int) -> None:
    """A whole, synced copy, put in place in one step."""
    partial = _stage(source, target, busy_timeout_ms)
    for leftover in (f"{target}-wal", f"{target}-shm"):
        Path(leftover).unlink(missing_ok=True)
    Path(partial).replace(target)
    directory = os.open(Path(target).parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _stage(source: str, target: str, busy_timeout_ms: int) -> str:
    """A whole, synced copy beside `target`, under a temporary name, which is returned."""
    partial = f"{target}.partial"
    if Path(partial).exists() and Path(partial).samefile(source):
        raise Conflict(f"{source} has the name of an unfinished copy; give it another one.")
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
    return partial


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
