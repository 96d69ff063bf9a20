"""The schema of the settings' database: what is due, what that means for this program, and the migration."""

from __future__ import annotations

from petstore.config import Settings
from petstore.core.clock import Clock
from petstore.storage import migrations
from petstore.storage.migrations import Migration, Schema
from petstore.storage.observer import MigrationObserver
from petstore.storage.sqlite import migrating as sqlite_migrating
from petstore.storage.sqlite import schema as sqlite
from petstore.wiring.administration import database_path, has_database, postgres_options, uses_server


def pending(settings: Settings) -> list[str]:
    """The steps that `migrate` would run; nothing is changed.

    Raises ConfigurationError for a schema that has left this program behind.
    """
    known, schema = _read(settings)
    return [step.title for step in migrations.pending(known, schema)]


def check(settings: Settings) -> None:
    """Raise ConfigurationError when the schema has left this program behind."""
    migrations.check_allowed(*_read(settings))


def remark(settings: Settings) -> str:
    """How the schema differs from this program's; empty when it does not."""
    return migrations.remark(*_read(settings))


def migrate(settings: Settings, clock: Clock, observer: MigrationObserver, *, serving: bool = False) -> None:
    """Bring the schema up to date, in a new database when there is none; a SQLite file is copied first.

    `serving`: the caller holds the database, as starting.lock_for_serving does.
    """
    if uses_server(settings):
        from petstore.storage.postgres import schema as postgres

        postgres.migrate(settings.database_url, postgres_options(settings), observer.applied)
        return
    path = str(database_path(settings))
    sqlite_migrating.migrate(path, settings.busy_timeout_ms, clock, observer, serving=serving)


def migrate_for_serving(settings: Settings, clock: Clock, observer: MigrationObserver) -> None:
    """The same for a service that starts on a database of before, where PETSTORE_MIGRATE lets it."""
    allowed = settings.migrate == "on" or (settings.migrate == "auto" and not uses_server(settings))
    if allowed and has_database(settings):
        migrate(settings, clock, observer, serving=True)


def _read(settings: Settings) -> tuple[tuple[Migration, ...], Schema]:
    """What this program knows, and what the database has."""
    if uses_server(settings):
        from petstore.storage.postgres import schema as postgres

        schema = postgres.read_database(settings.database_url, postgres_options(settings))
        return migrations.load(postgres.MIGRATIONS_PACKAGE), schema
    schema = sqlite.read_file(str(database_path(settings)), settings.busy_timeout_ms)
    return migrations.load(sqlite.MIGRATIONS_PACKAGE), schema
