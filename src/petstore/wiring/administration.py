"""Opens and tends the database of the settings: what a command needs without the service around it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from petstore.config import Settings
from petstore.core.clock import Clock
from petstore.core.errors import ConfigurationError, OperatorError, StoreUnavailable
from petstore.core.versions import LEASE_SECONDS, LeaseWaitPublisher, Publisher
from petstore.storage.backend import Backend, Store, backend_for, is_server, sqlite_path
from petstore.storage.options import PostgresOptions, SqliteOptions
from petstore.storage.reports import CheckReport
from petstore.storage.sqlite import files, reserve, upkeep
from petstore.storage.sqlite import schema as sqlite
from petstore.storage.sqlite.upkeep import Restored

if TYPE_CHECKING:
    from petstore.limiter.valkey.inspection import CountersReport
    from petstore.storage.copying import CopiedTable

__all__ = ["Backend", "CheckReport", "Restored", "Store", "backend_of"]


def backend_of(settings: Settings) -> Backend:
    """The database of the settings. Raises ConfigurationError for a URL that is not understood."""
    return backend_for(settings.database_url, _sqlite_options(settings), postgres_options(settings))


def _sqlite_options(settings: Settings) -> SqliteOptions:
    return SqliteOptions(write_queue=settings.write_queue, busy_timeout_ms=settings.busy_timeout_ms)


def postgres_options(settings: Settings) -> PostgresOptions:
    """How to speak to the server of the settings."""
    return PostgresOptions(
        timeout_ms=settings.database_timeout_ms,
        connections=settings.database_pool,
        max_waiters=settings.write_queue,
        prepared=settings.database_prepared,
    )


def uses_server(settings: Settings) -> bool:
    """Whether the database is a server's, and not a file of this machine."""
    return is_server(settings.database_url)


def database_name(settings: Settings) -> str:
    """What to call the database to a person: its file, or its server and name without any password."""
    if not uses_server(settings):
        return str(database_path(settings))
    parts = urlsplit(settings.database_url)
    return f"postgresql://{server_place(parts.netloc)}{parts.path}"


def server_place(netloc: str) -> str:
    """Host and port of a URL, without the user and the password before them."""
    return netloc.rpartition("@")[2]


def is_same_place(one: str, other: str) -> bool:
    """Whether two URLs differ in user and password alone. Raises ValueError for one that can't be parsed."""
    before, after = (
        url._replace(netloc=server_place(url.netloc)) for url in (urlsplit(one), urlsplit(other))
    )
    return before == after


def database_path(settings: Settings) -> Path:
    """The database's file, which need not exist.

    Raises ConfigurationError when its directory does not or can't be entered, when it is a directory, and
    when this user may not read it; OperatorError when the database is not a file.
    """
    if uses_server(settings):
        raise OperatorError(
            "The database is on a PostgreSQL server and is no file:"
            " copy it with pg_dump, and put a copy back with pg_restore."
        )
    path = Path(sqlite_path(settings.database_url))
    try:
        path.stat()
    except PermissionError as error:
        raise ConfigurationError(
            f"PETSTORE_DATABASE_URL: this user may not enter a directory before {path}; allow that first."
        ) from error
    except OSError:
        pass  # it need not exist
    if not path.absolute().parent.is_dir():
        raise ConfigurationError(
            f"PETSTORE_DATABASE_URL: there is no directory {path.absolute().parent}; make it first."
        )
    if path.is_dir():
        raise ConfigurationError(f"PETSTORE_DATABASE_URL: {path} is a directory; name a file in it.")
    files.refuse_unreadable(path)
    return path


def has_database(settings: Settings) -> bool:
    """Whether there is a store to open: a file, or a server's database, with a schema of ours."""
    if uses_server(settings):
        from petstore.storage.postgres import schema as postgres

        return postgres.read_database(settings.database_url, postgres_options(settings)).version > 0
    return sqlite.read_file(str(database_path(settings)), settings.busy_timeout_ms).version > 0


def copy_database(
    settings: Settings,
    source: str,
    target: str,
    expect: Callable[[int], None],
    progress: Callable[[int], None],
) -> list[CopiedTable]:
    """Move the store in a SQLite file to an empty PostgreSQL database; the source stays as it is.

    `expect` is told how many rows there are to write and read back, `progress` of each that is done. Raises
    ConfigurationError for any other pair of databases, OperatorError while a server uses the source or when
    the target is not empty.
    """
    if is_server(source) or not is_server(target):
        raise ConfigurationError(
            "A store is copied from a SQLite file to PostgreSQL:"
            " petstore db copy sqlite:///petstore.db postgresql://USER@HOST/DATABASE."
        )
    from petstore.storage import copying
    from petstore.storage.sqlite import copying as source_copying

    with source_copying.opened(sqlite_path(source), settings.busy_timeout_ms) as opened:
        expect(2 * copying.count_rows(opened))
        return asyncio.run(copying.copy(opened, target, postgres_options(settings), progress))


@asynccontextmanager
async def store_for_command(
    settings: Settings, clock: Clock, say: Callable[[str], None]
) -> AsyncIterator[Store]:
    """The store beside running servers, which hear of every change before the command is done.

    Where counters are shared and can't be reached, or this command was not told where they are, what
    replicas keep of the store ends by itself after some seconds: a change waits so long, and says so.
    """

    async def wait(reason: str) -> None:
        say(f"{reason}: waiting {LEASE_SECONDS:g} s, until no replica uses what it kept before.")
        await asyncio.sleep(LEASE_SECONDS)

    async def wait_where_needed() -> None:
        try:
            needed = await store.has_shared_counters()
        except StoreUnavailable:
            needed = True
        if needed:
            await wait("The replicas share a Valkey, and PETSTORE_VALKEY_URL is not set here")

    async with AsyncExitStack() as opened:
        publisher: Publisher = LeaseWaitPublisher(wait_where_needed)
        if settings.valkey_url:
            from petstore.limiter.valkey.shared import open_publisher

            telling = open_publisher(
                settings.valkey_url, lambda why: wait(f"Valkey can't be reached ({why})")
            )
            opened.push_async_callback(telling.close)
            publisher = telling
        store = backend_of(settings).open(clock, publisher=publisher)
        opened.push_async_callback(store.close)
        yield store


def check_counters(settings: Settings, clock: Clock) -> CountersReport | None:
    """What the Valkey of the settings says about itself; None where there is none. Raises Unavailable."""
    if not settings.valkey_url:
        return None
    from petstore.limiter.valkey.shared import inspect

    return asyncio.run(inspect(settings.valkey_url, clock))


def check_database(settings: Settings) -> CheckReport:
    """Read all of the database and say what is wrong. Raises OperatorError when there is none."""
    if uses_server(settings):
        from petstore.storage.postgres.upkeep import check

        return check(settings.database_url, postgres_options(settings))
    return upkeep.check(str(database_path(settings)), settings.busy_timeout_ms)


def keep_reserve(settings: Settings) -> None:
    """Keep room back for `keys revoke` on a full disk, where the database is a file and there is plenty."""
    if not uses_server(settings):
        reserve.keep(sqlite_path(settings.database_url))


def has_reserve(settings: Settings) -> bool:
    """Whether such room is kept back."""
    return not uses_server(settings) and reserve.is_kept(sqlite_path(settings.database_url))


def give_up_reserve(settings: Settings) -> bool:
    """Give that room back; whether there was any."""
    return not uses_server(settings) and reserve.give_up(sqlite_path(settings.database_url))


def back_up_database(settings: Settings, target: Path) -> CheckReport:
    """Copy the database, in use or not, to a new file. Raises OperatorError when `target` exists."""
    return upkeep.backup(str(database_path(settings)), str(target), settings.busy_timeout_ms)


def backup_mark(settings: Settings) -> Path:
    """An empty file beside the SQLite database; it is as old as the last sound backup."""
    return Path(f"{database_path(settings).resolve()}.last-backup")


def note_backup(settings: Settings) -> None:
    """Note for metrics that a sound backup was made now. Raises OSError."""
    mark = backup_mark(settings)
    files.make(str(mark), like=str(database_path(settings)))
    mark.touch()


def restore_database(settings: Settings, source: Path, clock: Clock) -> Restored:
    """Put a backup in the database's place. Raises OperatorError while a server runs or if it is damaged."""
    return upkeep.restore(str(database_path(settings)), str(source), clock, settings.busy_timeout_ms)
