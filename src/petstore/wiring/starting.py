"""What a service does with its database before it serves: checks that it can be used, and holds it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime

from petstore.config import Settings
from petstore.core.clock import Clock
from petstore.core.errors import StoreFull
from petstore.storage.backend import Store
from petstore.storage.sqlite import files, lock, upkeep
from petstore.wiring.administration import (
    database_path,
    give_up_reserve,
    has_database,
    postgres_options,
    uses_server,
)

_CLOCK_TOLERANCE_MS = 300_000


def lock_for_serving(settings: Settings) -> AbstractContextManager[object]:
    """Hold the database for one service where the counters of the limits live in its process.

    Raises OperatorError when another service holds it. PgBouncer knows no sessions and can't hold anything.
    """
    if settings.valkey_url or (uses_server(settings) and not settings.database_prepared):
        return nullcontext()
    if uses_server(settings):
        from petstore.storage.postgres.upkeep import held_for_serving

        return held_for_serving(settings.database_url, postgres_options(settings))
    return lock.lock_for_serving(str(database_path(settings)), create=True)


def refuse_unwritable(settings: Settings) -> None:
    """Raise ConfigurationError where this user can't write the database's file, which no time mends."""
    if not uses_server(settings):
        files.refuse_unwritable(str(database_path(settings)))


def _make_room(settings: Settings) -> bool:
    """Whether the disk is too full to open the file, and the room that was kept back has been given up.

    SQLite makes some of its files anew after a clean stop, also to read.
    """
    if uses_server(settings):
        return False
    try:
        has_database(settings)
    except StoreFull:
        return give_up_reserve(settings)
    return False


def warnings_before_start(settings: Settings, clock: Clock) -> list[str]:
    """What somebody should see to, though the service starts: one line each."""
    found = []
    if _make_room(settings):
        found.append(
            "No room to open the database: the room that was kept back for that is used up. Make room."
        )
    if uses_server(settings):
        return found
    path = str(database_path(settings))
    if files.readable_by_others(path):
        found.append(f"{path} can be read by every user of this machine. To end that: chmod 600 {path}.")
    if (names := database_path(settings).stat().st_nlink) > 1:
        found.append(
            f"{path} has {names} names, since there are hard links to it. Remove the others:"
            " SQLite's log goes by the name, and a command that uses another one damages the database."
        )
    newest_ms = upkeep.newest_ms(path, settings.busy_timeout_ms)
    if clock.now_ms() < newest_ms - _CLOCK_TOLERANCE_MS:
        found.append(
            f"The clock says {_text(clock.now_ms())}, and {path} has a record of {_text(newest_ms)}."
            " Set the clock: limits, expiry of keys and usage go by it."
        )
    return found


async def counts_apart(settings: Settings, store: Store) -> bool:
    """Whether this service will count by itself on a database that services with a Valkey used last."""
    return not settings.valkey_url and await store.has_shared_counters()


def _text(time_ms: int) -> str:
    return f"{datetime.fromtimestamp(time_ms // 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
