"""The file's schema: its versions, its creation, its migration."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw

from petstore.core.errors import StoreUnavailable
from petstore.storage import migrations
from petstore.storage.migrations import DatabaseSchema
from petstore.storage.options import SqliteOptions
from petstore.storage.sqlite import blockers
from petstore.storage.sqlite.connection import closing_reader, open_reader, open_writer, translated
from petstore.transactions.stages import HAS_LIVE_KEYS, STAMP

MIGRATIONS_PACKAGE = "petstore.storage.sqlite.migrations"
# user_version is the schema's `oldest`: 1.0.0 refuses a greater one than it knows.
_CREATE_STEPS = (
    "CREATE TABLE IF NOT EXISTS schema_steps (number INTEGER PRIMARY KEY, name TEXT NOT NULL,"
    " oldest INTEGER NOT NULL, applied_at_ms INTEGER NOT NULL) STRICT"
)
_ADD_STEP = "INSERT INTO schema_steps VALUES (?, ?, ?, CAST(unixepoch('subsec') * 1000 AS INTEGER))"


def read(connection: apsw.Connection) -> DatabaseSchema:
    """The versions that the file records."""
    oldest: int = connection.execute("PRAGMA user_version").get
    last = 0
    if connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'schema_steps'").get:
        last = connection.execute("SELECT max(number) FROM schema_steps").get or 0
    stage = None
    if connection.execute("SELECT 1 FROM pragma_table_info('data_set') WHERE name = 'stage'").get:
        stage = connection.execute(STAMP.sqlite).get
    has_live_keys = False
    if oldest and not stage:
        has_live_keys = bool(connection.execute(HAS_LIVE_KEYS.sqlite).get)
    known = migrations.load(MIGRATIONS_PACKAGE)
    return DatabaseSchema(max(oldest, last), oldest, known, stage or "", has_live_keys)


def read_file(path: str, busy_timeout_ms: int) -> DatabaseSchema:
    """The versions of the file at `path`, which may be missing, and changes only to undo what was cut off."""
    if not Path(path).is_file():
        return DatabaseSchema(0, 0, migrations.load(MIGRATIONS_PACKAGE))
    try:
        reader = open_reader(path, busy_timeout_ms)
    except StoreUnavailable as error:
        if getattr(error.__cause__, "extendedresult", 0) != apsw.SQLITE_READONLY_ROLLBACK:
            raise
        # A power cut while the file was made left a journal, which a connection for reads can't roll back.
        with translated(), closing(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
            connection.set_busy_timeout(busy_timeout_ms)
            connection.execute("PRAGMA user_version").fetchall()
        reader = open_reader(path, busy_timeout_ms)
    with closing_reader(reader), translated():
        return read(reader)


def prepare(path: str, options: SqliteOptions) -> None:
    """Create a missing file. Raises ConfigurationError, and changes nothing, for a schema that must be
    migrated first, for one that needs a newer program, and for data of another stage.
    """
    schema = read_file(path, options.busy_timeout_ms)
    schema.check_stage(options.stage)
    if schema.exists:
        schema.check_current()
    else:
        migrate(path, options.busy_timeout_ms)


def migrate(
    path: str,
    busy_timeout_ms: int,
    *,
    before: Callable[[DatabaseSchema], None] | None = None,
    applied: Callable[[str], object] = lambda _: None,
) -> list[str]:
    """Bring the schema up to date, one transaction for each step; the names of the steps that ran.

    A new file gets all of them in one, so that no process sees it half made. `before` is called once, while
    no other process can write, unless the file is new; `applied` after each step. Several processes may call
    this at once. Raises ConfigurationError when the schema needs a newer program, StoreUnavailable with the
    process that writes when it does so for longer than the timeout.
    """
    pending = read_file(path, busy_timeout_ms).pending()
    if not pending:
        return []
    ran: list[str] = []
    try:
        with closing(open_writer(path, busy_timeout_ms)) as connection:
            while steps := _run_next(connection, None if ran else before):
                ran += steps
                for step in steps:
                    applied(step)
    except StoreUnavailable as error:
        if isinstance(error.__cause__, apsw.BusyError):
            raise migrations.held_up(blockers.find(path), len(ran), len(pending)) from error
        raise
    return ran


def _run_next(connection: apsw.Connection, before: Callable[[DatabaseSchema], None] | None) -> list[str]:
    """Run one step, or in a new file all; none when another process did."""
    with translated():
        connection.execute("BEGIN IMMEDIATE")
        schema = read(connection)
        todo = schema.pending()
        if schema.exists:
            todo = todo[:1]
    if todo and schema.exists and before is not None:
        before(schema)
    with translated():
        for step in todo:
            connection.execute(_CREATE_STEPS)
            try:
                connection.execute(step.sql)
            except (apsw.SQLError, apsw.ConstraintError) as error:
                raise migrations.failed(step, str(error)) from error
            connection.execute(_ADD_STEP, (step.number, step.name, step.oldest))
            connection.execute(f"PRAGMA user_version = {step.oldest}")
        connection.execute("COMMIT")
    return [step.title for step in todo]
