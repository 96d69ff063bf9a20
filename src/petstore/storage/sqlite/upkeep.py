"""Upkeep of the file for operators: check, online backup, restore."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import apsw
import msgspec

from petstore.core.clock import Clock
from petstore.core.errors import OperatorError, StoreDamaged, StoreFull, StoreUnavailable
from petstore.core.journal import STORE
from petstore.storage import reports
from petstore.storage.reports import CheckReport, Contents
from petstore.storage.sqlite import files
from petstore.storage.sqlite import schema as schemas
from petstore.storage.sqlite.connection import closing_reader, open_reader, open_writer, translated
from petstore.storage.sqlite.database import run
from petstore.storage.sqlite.lock import lock_for_serving
from petstore.storage.sqlite.whole_copies import SIDE_FILES, whole_copy
from petstore.transactions.events import RENEW
from petstore.transactions.journal import record
from petstore.transactions.sign_ins import end_all_access

_NEWEST = (
    "SELECT max(at) FROM (SELECT max(created_at_ms) AS at FROM accounts"
    " UNION ALL SELECT max(created_at_ms) FROM api_keys"
    " UNION ALL SELECT max(last_used_at_ms) FROM key_activity"
    " UNION ALL SELECT max(minute_opened_ms) FROM account_windows)"
)
_PETS = "SELECT count(*) FROM pets"
_LAST_CHANGE = "SELECT at_ms FROM journal ORDER BY id DESC LIMIT 1"
# Numbers of one row, and room for more, whatever stands in a damaged table.
_VERSIONS = "SELECT {}, {} FROM versions".format(
    *(f"min(coalesce(max(CAST({each} AS INTEGER)), 0), 1 << 62)" for each in ("catalogue", "keyring"))
)

_FULL = (errno.ENOSPC, errno.EDQUOT)

_Note = Callable[[apsw.Connection], None]


class Restored(msgspec.Struct, frozen=True):
    """The database after `db restore`; `kept` is the file with the one from before, if there was one."""

    report: CheckReport
    kept: str | None


def contents(path: str, busy_timeout_ms: int) -> Contents | None:
    """What a restore would replace; None where no file is."""
    if not Path(path).exists():
        return None
    pets, changed_at_ms = (_number(path, busy_timeout_ms, query) for query in (_PETS, _LAST_CHANGE))
    return Contents(pets, changed_at_ms)


def _number(path: str, busy_timeout_ms: int, query: str) -> int | None:
    """The first column of the first row; None without a row, and where nothing can be read."""
    try:
        with closing_reader(open_reader(path, busy_timeout_ms)) as reader, translated():
            found: int | None = reader.execute(query).get
    except StoreUnavailable:
        return None
    return found


def check(path: str, busy_timeout_ms: int) -> CheckReport:
    """Read every page and index of the file and report its faults. Safe beside a running server."""
    if not Path(path).exists():
        raise OperatorError(f"There is no database {path}; `petstore db migrate` creates it.")
    try:
        return _check(path, busy_timeout_ms)
    except StoreDamaged as error:
        # Too damaged to be read is a finding of the check, not an outage.
        return CheckReport(0, 0, 0, 0, [error.message.removeprefix("The store failed: ").rstrip(".")])


def _check(path: str, busy_timeout_ms: int) -> CheckReport:
    with closing_reader(open_reader(path, busy_timeout_ms)) as reader, translated():
        findings = [row[0] for row in reader.execute("PRAGMA integrity_check")]
        problems = [finding for finding in findings if finding != "ok"]
        # The header's write version: SQLite only reads the files of a later one.
        if reader.read("main", 0, 18, 1)[1] > b"\x02":
            problems.append("its header says that SQLite is too old to write it, so nothing can be stored")
        problems += [
            f"{table}: row {row} refers to a missing row of {parent}"
            for table, row, parent, _ in reader.execute("PRAGMA foreign_key_check")
        ]
        schema = schemas.read(reader)
        report = reports.of_schema(schema, problems)
        if not schema.exists or not schema.is_usable:
            return report
        pets, accounts, keys = reader.execute(reports.COUNTS).get
        return msgspec.structs.replace(report, pets=pets, accounts=accounts, keys=keys)


def newest_ms(path: str, busy_timeout_ms: int) -> int:
    """The latest time that an account, a key or a counter carries; 0 where nothing can be read."""
    return _number(path, busy_timeout_ms, _NEWEST) or 0


def backup(path: str, target: str, busy_timeout_ms: int, like: str | None = None) -> CheckReport:
    """Copy the database to a new file while it is in use; the copy appears whole or not at all.

    A copy that root makes gets the owner of `like`, or of its directory.
    """
    if not Path(path).exists():
        raise OperatorError(f"There is no database {path}; nothing was backed up.")
    _refuse_to_overwrite(target)
    try:
        with whole_copy(path, target, busy_timeout_ms, like) as copy:
            _refuse_to_overwrite(target)  # another backup may have made it since
            _put_in_place(copy, target)
    except OSError as error:
        remedy = "Make room there" if error.errno in _FULL else "Let this user write there"
        raise OperatorError(
            f"The backup can't be written to {target}: {error.strerror}. {remedy}, or name another place."
        ) from error
    return check(target, busy_timeout_ms)


def _refuse_to_overwrite(target: str) -> None:
    if Path(target).exists():
        raise OperatorError(f"{target} exists already; a backup never overwrites a file.")


def restore(path: str, source: str, actor: str, clock: Clock, busy_timeout_ms: int) -> Restored:
    """Put a backup in the database's place. Refused while a server uses it, and for a damaged backup.

    The database from before is kept beside it under a free name. Other processes may have the database open:
    they see the restore as one transaction. The restored journal has an entry with the backup's name, unless
    the backup is of a program without a journal. Sessions and one-time links of the backup end.
    """
    if Path(path).is_symlink():  # replace the file that the link names, keep the link
        path = str(Path(path).resolve())
    found = check(source, busy_timeout_ms)
    if found.problems:
        raise OperatorError(f"{source} is damaged and was not restored: {found.problems[0]}.")
    schemas.read_file(source, busy_timeout_ms).check_usable()
    if Path(path).exists() and Path(path).samefile(source):
        raise OperatorError(f"{source} is the database itself; nothing was restored.")

    def note(content: apsw.Connection) -> None:
        if content.execute("SELECT 1 FROM sqlite_schema WHERE name = 'sessions'").get:
            run(content, end_all_access())
        if content.execute("SELECT 1 FROM sqlite_schema WHERE name = 'journal'").get:
            entry = record(clock.now_ms(), actor, STORE, 0, "restored", None, {"backup": Path(source).name})
            run(content, entry)
        if content.execute("SELECT 1 FROM sqlite_schema WHERE name = 'data_set'").get:
            content.execute(RENEW.sqlite)

    with _room_asked_for(path), lock_for_serving(path):
        kept = free_name(f"{path}.before-restore", clock) if Path(path).exists() else None
        if kept and _is_readable(path, busy_timeout_ms):
            return Restored(_replace_content(path, source, kept, busy_timeout_ms, note), kept)
        with whole_copy(source, path, busy_timeout_ms, like=path if kept else None) as copy:
            with contextlib.closing(apsw.Connection(copy)) as content, translated():
                note(content)
            # An unreadable database is renamed, and no sooner: where none is, a service starts an empty one.
            for suffix in ("-wal", "-shm", "") if kept else ():
                if Path(f"{path}{suffix}").exists():
                    Path(f"{path}{suffix}").rename(f"{kept}{suffix}")
            _put_in_place(copy, path)
        return Restored(check(path, busy_timeout_ms), kept)


@contextlib.contextmanager
def _room_asked_for(path: str) -> Iterator[None]:
    """Say of a full disk that nothing was restored, and what to do."""
    try:
        yield
    except (OSError, StoreFull) as error:
        if isinstance(error, OSError) and error.errno not in _FULL:
            raise
        raise OperatorError(
            f"The disk is full; nothing was restored. Make room for three more databases beside {path}."
        ) from error


def free_name(beginning: str, clock: Clock) -> str:
    """A free file name with the time, for the database that is replaced."""
    at = datetime.fromtimestamp(clock.now_ms() // 1_000, UTC)
    name = f"{beginning}-{at:%Y%m%dT%H%M%SZ}"
    numbered = (f"{name}-{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if not Path(each).exists())


def _is_readable(path: str, busy_timeout_ms: int) -> bool:
    """Whether SQLite can open the file to write; damage inside does not prevent its replacement."""
    try:
        with contextlib.closing(open_writer(path, busy_timeout_ms)) as connection, translated():
            connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
            # SQLite takes a damaged header for that of a newer version, whose files it does not change.
            return not (connection.readonly("main") and os.access(path, os.W_OK))
    except StoreDamaged:
        return False


def _replace_content(path: str, source: str, kept: str, busy_timeout_ms: int, note: _Note) -> CheckReport:
    """Copy every page of `source` into the file at `path`, in one transaction, and the old ones to `kept`."""
    with contextlib.ExitStack() as opened:
        content = apsw.Connection(opened.enter_context(whole_copy(source, path, busy_timeout_ms, like=path)))
        opened.callback(content.close)
        into = open_writer(path, busy_timeout_ms)
        opened.callback(into.close)
        with translated(), _tidied_when_full(kept):
            content.execute("PRAGMA journal_mode = MEMORY")
            page_size = into.execute("PRAGMA page_size").get
            if content.execute("PRAGMA page_size").get != page_size:  # pages are copied as they are
                content.execute(f"PRAGMA page_size = {page_size}")
                content.execute("VACUUM")
            note(content)
            with into.backup("main", content, "main") as progress:
                progress.step(0)  # takes the write lock until the end
                # Its name has no time yet, so that the next restore replaces what a killed one leaves.
                with whole_copy(path, f"{path}.before-restore", busy_timeout_ms, like=path) as copy:
                    _put_in_place(copy, kept)
                _move_versions_past(path, content, busy_timeout_ms)
                progress.step(-1)
        # Checked before the writing connection is closed, since its close removes the log.
        return check(path, busy_timeout_ms)


@contextlib.contextmanager
def _tidied_when_full(kept: str) -> Iterator[None]:
    """On a full disk the transaction is rolled back, and `kept` a second copy that takes the room left."""
    try:
        yield
    except apsw.FullError:
        files.remove(kept, "")
        raise


def _move_versions_past(path: str, content: apsw.Connection, busy_timeout_ms: int) -> None:
    """Move the restored versions past those at `path`, so that cached values are not current."""
    with closing_reader(open_reader(path, busy_timeout_ms)) as reader:
        try:
            before = reader.execute(_VERSIONS).get
        except (apsw.SQLError, apsw.CorruptError, apsw.NotADBError):
            return  # without versions nothing was cached
    content.execute(
        "UPDATE versions SET catalogue = max(catalogue, ?) + 1, keyring = max(keyring, ?) + 1", before
    )


def _put_in_place(copy: str, target: str) -> None:
    files.remove(target, *SIDE_FILES)
    Path(copy).replace(target)
    directory = os.open(Path(target).parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
