"""`petstore db`: the schema, the soundness and the copies of the database."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click
import msgspec

from petstore.cli.context import Session, with_store
from petstore.cli.groups import EXIT_REFUSED, LazyGroup
from petstore.cli.output import (
    Record,
    asks,
    confirm,
    echo_err,
    moment,
    row_progress,
    write_json,
    write_line,
    write_record,
    write_table,
    yes_option,
)
from petstore.core.arguments import WrongArgument, database_url, naming
from petstore.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from petstore.wiring.administration import CheckReport, Contents, SqliteBackend


@click.group(cls=LazyGroup)
def db() -> None:
    """The database: create, check, back up, restore and copy it.

    PETSTORE_DATABASE_URL names the database.
    """


@db.offers("migrate", "petstore db migrate --dry-run", "petstore db migrate")
@click.option("--dry-run", is_flag=True, help="Say what would run, and change nothing.")
def migrate(session: Session, dry_run: bool, as_json: bool) -> None:
    """Bring the database's schema up to date.

    Makes the database when there is none. Forward only. A SQLite file is first copied, and the copy checked:
    FILE.before-migration-VERSION-TIME beside it. No other command migrates; `petstore serve` does what
    PETSTORE_MIGRATE says.
    """
    backend = session.backend
    echo = (lambda _: None) if as_json else click.echo
    if dry_run:
        steps = [step.title for step in backend.schema().pending()]
        record: Record = {"database": backend.name, "pending": steps}
        for step in steps:
            echo(f"would apply {step}")
    else:
        log = _MigrationLog(echo)
        backend.migrate(session.clock, log)
        steps = log.steps
        record = {"database": backend.name, "applied": steps, "backup": log.backup}
    if as_json:
        write_json(record)
    elif not steps:
        remark = backend.schema().remark
        click.echo(f"Nothing to do: {remark}." if remark else "The schema is up to date.")


class _MigrationLog:
    """Implements storage.observer.MigrationObserver: prints and collects the steps."""

    def __init__(self, echo: Callable[[str], None]) -> None:
        self._echo = echo
        self.backup: str | None = None
        self.steps: list[str] = []

    def backed_up(self, file: str) -> None:
        self.backup = file
        self._echo(f"The previous database is kept as {file}.")

    def closed(self, line: str) -> None:
        echo_err(line)

    def applied(self, step: str) -> None:
        self.steps.append(step)
        self._echo(f"applied {step}")


@db.offers("check", "petstore db check")
def check(session: Session, as_json: bool) -> None:
    """Read all of the database and say whether it is sound.

    Exit code 1 when it is not, 78 when it needs a newer program. Safe beside a running server. Takes a while
    when the database is large, since it reads every page.
    """
    report = session.backend.check()
    _write_report(report, as_json)
    if report.problems:
        if not as_json:
            echo_err("petstore: The database is not sound. If it is damaged: petstore db restore FILE.")
        raise click.exceptions.Exit(EXIT_REFUSED)
    if report.pets is None:  # sound, and not for this program
        session.backend.schema().check_usable()


@db.offers("backup", 'petstore db backup "petstore-$(date +%F).db"')
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(session: Session, file: Path, as_json: bool) -> None:
    """Copy the database to FILE, and check the copy.

    Safe beside a running server. FILE must not exist yet. It appears whole or not at all, and is a database
    of its own. Exit code 1 when the copy is not sound, which `petstore db restore` would refuse.
    """
    if not file.absolute().parent.is_dir():
        raise click.UsageError(
            f"There is no directory {file.absolute().parent}.", click.get_current_context()
        )
    database = session.backend.require_file()
    report = database.back_up(file)
    _write_report(report, as_json)
    if not as_json:
        echo_err(f"Written to {file}.")
    if report.problems:
        if not as_json:
            echo_err(
                "petstore: The copy is not sound, since the database is not. Keep the backups from before."
            )
        raise click.exceptions.Exit(EXIT_REFUSED)
    try:
        database.note_backup()
    except OSError as error:
        echo_err(f"petstore: The backup is good, but its time could not be noted for metrics: {error}.")


@db.offers(
    "restore",
    "petstore db restore petstore-2026-11-21.db --into drill.db",
    "petstore db restore petstore-2026-11-21.db --yes /var/lib/petstore/petstore.db",
)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--into", metavar="TARGET", help="Restore into this file, not into the settings' database.")
@click.option("--yes", metavar="TARGET", help="Do not ask whether to replace TARGET, given in full.")
def restore(session: Session, file: Path, into: str | None, yes: str | None, as_json: bool) -> None:
    """Put the backup FILE in the place of a database.

    The database is that of the settings, or TARGET: a path or a sqlite:/// URL. It asks before it replaces;
    without a terminal it is refused unless --yes names just that database, by its whole path or URL.

    Stop the server first: it is refused while one runs on the database, and when the backup is damaged. The
    database that was there is kept beside it, with .before-restore and the time at the end of its name.
    """
    database, target = _target_of(session, into)
    _require_consent(file.resolve(), target, database.contents(), yes)
    restored = database.restore(file, session.actor, session.clock)
    _write_report(
        restored.report, as_json, source=str(file.resolve()), target=str(target), kept=restored.kept
    )
    if not as_json:
        kept = f" What was there is kept as {restored.kept}." if restored.kept else ""
        echo_err(f"Restored {target} from {file.resolve()}.{kept}")


def _target_of(session: Session, into: str | None) -> tuple[SqliteBackend, Path]:
    """The database that is restored into, and its whole path; links are followed."""
    from petstore.wiring import administration

    if into is None:
        database = session.backend.require_file()
        return database, database.checked_path().resolve()
    try:
        with naming("--into"):
            settings = msgspec.structs.replace(session.settings, database_url=database_url(into))
            database = administration.backend_of(settings).require_file()
            return database, database.checked_path().resolve()
    except (ConfigurationError, WrongArgument) as error:
        raise click.UsageError(str(error)) from None


def _require_consent(source: Path, target: Path, found: Contents | None, yes: str | None) -> None:
    """Ask before something is replaced. Raises ClickException without consent to just this target."""
    if yes is not None and yes not in (str(target), f"sqlite:///{target}"):
        raise click.ClickException(
            f"This is about {target}, and --yes names another database. Nothing was restored."
        )
    if found is None or yes is not None:
        return
    pets = "not counted" if found.pets is None else found.pets
    replaced = f"{target} (animals: {pets}, last change: {moment(found.changed_at_ms) or 'unknown'})"
    if asks(yes=False):
        confirm(f"Replace {replaced} by {source}?")
        return
    raise click.ClickException(
        f"Add --yes {quote(str(target))} to agree: {replaced} would be replaced by {source}."
    )


@db.offers("mark-restored", "petstore db mark-restored")
@yes_option
def mark_restored(session: Session, yes: bool, as_json: bool) -> None:
    """Say that the database was restored by other means.

    Use it after a file was copied or a disk restored; `db restore` does this by itself. Bookmarks of events
    from before are refused, so that programs that follow the events list the animals anew. Safe beside a
    running server. PostgreSQL notices another cluster, database or timeline by itself.
    """
    name = session.backend.name
    if asks(yes):
        confirm(f"Was {name} restored? All programs that follow its events have to list the animals anew.")
    with_store(session, lambda store: store.events.note_restore(session.actor))
    text = f"{name} is marked as restored: bookmarks from before are refused."
    write_record({"database": name}, text, as_json)


@db.offers("copy", "petstore db copy sqlite:///petstore.db postgresql://petstore@db.example/petstore")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
def copy(session: Session, source: str, target: str, as_json: bool) -> None:
    """Move a store from a SQLite file to PostgreSQL.

    Everything but people's sessions, one-time links and known networks, stock lists that wait at the console,
    and refused requests. Identifiers stay, so keys go on working; bookmarks of events end. Stop the server
    first. FROM stays as it is; TO has to be empty, is written in one transaction, and read back before that
    is kept: it is whole or still empty. FROM is a path or a sqlite:/// URL.

    Keep the password out of TO: PGPASSWORD or ~/.pgpass has it.
    """
    from petstore.wiring import administration

    with row_progress("Copying") as (expect, progress):
        tables = administration.copy_database(session.settings, source, target, expect, progress)
    records = [{"table": table.name, "rows": table.rows, "sha256": table.sha256} for table in tables]
    if as_json:
        write_json(records)
        return
    write_table(
        records, {"TABLE": "table", "ROWS": "rows", "SHA-256": lambda table: str(table["sha256"])[:16]}
    )
    echo_err("Copied and verified. Set PETSTORE_DATABASE_URL to the new database and start the server.")


def _write_report(report: CheckReport, as_json: bool, **more: str | None) -> None:
    record = {
        "schemaVersion": report.schema_version,
        "pets": report.pets,
        "accounts": report.accounts,
        "keys": report.keys,
        "problems": report.problems,
        "remark": report.remark or None,
        **more,
    }
    fields = {
        "schema version": report.schema_version,
        "animals": _counted(report.pets),
        "accounts": _counted(report.accounts),
        "keys": _counted(report.keys),
        "sound": "no" if report.problems else "yes",
    }
    write_record(record, fields, as_json)
    if as_json:
        return
    for problem in report.problems:
        write_line(f"problem: {problem}")
    if report.remark:
        write_line(f"remark: {report.remark}")


def _counted(count: int | None) -> int | str:
    return "not counted" if count is None else count
