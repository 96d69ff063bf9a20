"""Opens and tends the database of the settings: what a command needs without the service around it."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from petstore.clock import Clock
from petstore.config import Settings
from petstore.errors import ConfigurationError
from petstore.storage import Store, StoreOptions, open_storage, sqlite_path
from petstore.storage.observer import StoreObserver
from petstore.storage.sqlite import upkeep
from petstore.storage.sqlite.upkeep import CheckReport, Restored

__all__ = ["CheckReport", "Restored", "Store", "open_store"]


def open_store(settings: Settings, clock: Clock, observer: StoreObserver | None = None) -> Store:
    """The store of the settings, created and migrated when needed."""
    options = StoreOptions(settings.write_queue, settings.busy_timeout)
    return open_storage(settings.database_url, clock, options, observer)


def lock_for_serving(settings: Settings) -> IO[str]:
    """Hold the database for one server, since the counters of the limits live in its process.

    Raises Conflict when another server holds it.
    """
    return upkeep.lock_for_serving(str(database_path(settings)))


def database_path(settings: Settings) -> Path:
    """The database's file, which need not exist.

    Raises ConfigurationError when its directory does not, and when it is a directory.
    """
    path = Path(sqlite_path(settings.database_url))
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(
            f"PETSTORE_DATABASE_URL: there is no directory {path.absolute().parent}; make it first."
        )
    if path.is_dir():
        raise ConfigurationError(f"PETSTORE_DATABASE_URL: {path} is a directory; name a file in it.")
    return path


def migrate_database(settings: Settings) -> list[str]:
    """Bring the schema up to date, in a new file when there is none; the names of the steps that ran."""
    return upkeep.migrate(str(database_path(settings)), settings.busy_timeout)


def check_database(settings: Settings) -> CheckReport:
    """Read all of the database and say what is wrong. Raises NotFound when there is none."""
    return upkeep.check(str(database_path(settings)), settings.busy_timeout)


def back_up_database(settings: Settings, target: Path) -> CheckReport:
    """Copy the database, in use or not, to a file that does not exist yet. Raises Conflict when it does."""
    return upkeep.backup(str(database_path(settings)), str(target), settings.busy_timeout)


def restore_database(settings: Settings, source: Path, clock: Clock) -> Restored:
    """Put a backup in the database's place. Raises Conflict while a server runs or when it is damaged."""
    return upkeep.restore(str(database_path(settings)), str(source), clock, settings.busy_timeout)
