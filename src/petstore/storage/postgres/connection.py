"""Opens connections with their timeouts, and recognises PgBouncer and wrong addresses."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from petstore.core.errors import ConfigurationError
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres.pool import Connection

# statement_timeout fires first: the outcome is known and the connection stays usable. The client's timeout
# comes this much later.
_GRACE_SECONDS = 0.5
# The driver passes options that it does not know on to the server, which refuses them with these.
_NO_SUCH_OPTION = ("42704", "55P02", "22023")
_QUOTED = re.compile('"([^"]+)"')
_UNPREPARED = "Set PETSTORE_DATABASE_PREPARED=off."
# The server does not know how short a LIMIT is, and would plan a page anew each time. No option of the
# connection, which PgBouncer would need in its configuration. An incremental sort would read all orders of an
# account for a page of those in one state. Nor does it know that a read of the journal finds little: with a
# long journal it would compile that for 0.1 s, ten times a second.
_PLAN_ONCE = "SET plan_cache_mode = force_generic_plan; SET enable_incremental_sort = off; SET jit = off"
# The driver looks these types up by a query that the server compiles for a second or more, unless that is
# turned off before. PgBouncer leads both to one session in a transaction alone.
_ARRAYS = "SELECT $1::bigint[], $2::integer[], $3::text[], $4::bytea[]"
_SESSION = "SELECT pg_backend_pid()"
_LOST_STATEMENT = (asyncpg.DuplicatePreparedStatementError, asyncpg.InvalidSQLStatementNameError)


async def connect(url: str, options: PostgresOptions, *, bounded: bool = True) -> Connection:
    """A new connection; with `bounded`, statements have a timeout on the server and in the driver.

    Raises ConfigurationError for an address that can't be understood, and the driver's errors.
    """
    seconds = options.timeout_ms / 1_000
    # An address that names another encoding, as other programs need it, would lose texts.
    settings = {"application_name": "petstore", "client_encoding": "UTF8"}
    if options.prepared:  # PgBouncer refuses most settings
        timeout_ms = options.timeout_ms if bounded else 0  # a role or a database may have its own
        settings["statement_timeout"] = settings["idle_in_transaction_session_timeout"] = str(timeout_ms)
    try:
        connection = await _connect_to_one(
            _servers_of(url),
            seconds,
            command_timeout=(seconds + _GRACE_SECONDS if options.prepared else seconds) if bounded else None,
            statement_cache_size=100 if options.prepared else 0,
            max_cached_statement_lifetime=0,
            server_settings=settings,
        )
        if bounded:
            await _prepare(connection, plan_once=options.prepared)
        return connection
    except (asyncpg.PostgresError, OSError, ValueError, OverflowError) as error:
        reason = _wrong_address(error)
        if reason is None:
            raise
        raise ConfigurationError(f"PETSTORE_DATABASE_URL{reason}") from error


def _servers_of(url: str) -> list[str]:
    """An address for each server that this one names. Raises ValueError for one without a name."""
    parts = urlsplit(url)
    user, at, named = parts.netloc.rpartition("@")
    if not named and parts.query:
        return _servers_of_options(url)
    if "," not in named:
        return [url]
    servers = named.split(",")
    if "" in servers:
        raise ValueError(named)
    return [urlunsplit(parts._replace(netloc=f"{user}{at}{server}")) for server in servers]


def _servers_of_options(url: str) -> list[str]:
    """An address for each server in the options: `host=A,B` with one port for all or one for each."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, strict_parsing=True))
    hosts, ports = options.get("host", "").split(","), options.get("port", "").split(",")
    if len(hosts) == 1:
        return [url]
    if "" in hosts or len(ports) not in (1, len(hosts)):
        raise ValueError("host and port")
    addresses = zip(hosts, ports if len(ports) > 1 else ports * len(hosts), strict=True)
    each = [urlencode({**options, "host": host, "port": port}) for host, port in addresses]
    return [urlunsplit(parts._replace(query=query)) for query in each]


async def _connect_to_one(servers: list[str], seconds: float, **options: Any) -> Connection:
    """The first that may be used. Each has its part of the time: with the driver's own list one that hangs,
    or whose machine is gone, takes all of it."""
    failed: Exception | None = None
    for server in servers:
        try:
            return await asyncpg.connect(server, timeout=seconds / len(servers), **options)
        except asyncpg.TargetServerAttributeNotMatched as error:  # a standby explains less than an outage
            failed = failed or error
        except (OSError, asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError) as error:
            failed = error
    assert failed is not None
    raise failed


async def _prepare(connection: Connection, *, plan_once: bool) -> None:
    try:
        if plan_once:
            await connection.execute(_PLAN_ONCE)
        else:
            async with connection.transaction():
                await connection.fetch(_ARRAYS, [], [], [], [])
    except BaseException:
        connection.terminate()
        raise


async def connect_first(url: str, options: PostgresOptions, *, bounded: bool = True) -> Connection:
    """The first connection of a service or a command.

    PgBouncer in transaction mode gives one session to several connections, which loses prepared statements
    and locks of the session. Raises ConfigurationError where statements are to be prepared through it, and
    the driver's errors.
    """
    connection = await connect(url, options, bounded=bounded)
    try:
        if options.prepared and await _shares_session(connection, url, options):
            raise ConfigurationError(
                "PETSTORE_DATABASE_URL leads to PgBouncer in transaction mode, where prepared statements get"
                f" lost. {_UNPREPARED}"
            )
    except BaseException:
        connection.terminate()
        raise
    return connection


async def _shares_session(connection: Connection, url: str, options: PostgresOptions) -> bool:
    """Whether the next query may use another session, or another connection uses the same one.

    Opens that other connection behind a pooler only.
    """
    try:
        session = await connection.fetchval(_SESSION)
        if session == connection.get_server_pid():  # a pooler reports a pid of its own
            return False
        if await connection.fetchval(_SESSION) != session:  # the pooler rotates its sessions
            return True
        other = await connect(url, options, bounded=False)
        try:
            async with asyncio.timeout(options.timeout_ms / 1_000):
                return bool(await other.fetchval(_SESSION) == session)
        except TimeoutError:  # it waits for a session, so none is shared
            return False
        finally:
            other.terminate()
    except _LOST_STATEMENT:  # the statement belongs to another client's session
        return True


def _wrong_address(error: Exception) -> str | None:
    """The fault of the address, as the end of a message; None for another cause."""
    if isinstance(error, asyncpg.ProtocolViolationError) and "startup parameter" in str(error):
        return f" leads to PgBouncer, which refuses the timeouts that the service sets. {_UNPREPARED}"
    if isinstance(error, asyncpg.PostgresError):
        if error.sqlstate not in _NO_SUCH_OPTION:
            return None
        option = _QUOTED.search(str(error))
        return f": the server does not take its option {option[1] if option else ''}; leave it out."
    if isinstance(error, OSError):
        # Errors of sockets name no file.
        if not isinstance(error, PermissionError) or not error.filename:
            return None
        return f": {error.filename} may not be read, where the driver looks for files of this user; set HOME."
    missing = _QUOTED.search(str(error))
    if missing and str(error).startswith("root certificate file"):
        return (
            f": its sslmode needs the certificate of an authority, and there is none in {missing[1]};"
            " add sslrootcert=FILE to it."
        )
    return (
        " is not understood; write postgresql://USER:PASSWORD@HOST:5432/DATABASE, with"
        " ?sslmode=verify-full&sslrootcert=FILE to insist on TLS."
    )
