"""How a connection is made, and what bounds it. What is done with it is database.py's affair."""

from __future__ import annotations

import asyncpg
import msgspec

from petstore.errors import ConfigurationError
from petstore.storage.postgres.pool import Connection

# The server itself ends a statement in time: then the connection can be used on, and the outcome is known.
# This much later we give up on the server.
_GRACE_SECONDS = 0.5


class Tuning(msgspec.Struct, frozen=True):
    """The bounds of the settings: time for a statement, connections, who may wait, prepared statements."""

    timeout_ms: int
    connections: int
    waiting: int
    prepared: bool


async def connect(url: str, tuning: Tuning, *, bounded: bool = True) -> Connection:
    """A new connection; the server ends its statements in time when they are `bounded`.

    Raises ConfigurationError for an address that can't be understood, and the driver's errors.
    """
    seconds = tuning.timeout_ms / 1_000
    settings = {"application_name": "petstore"}
    if tuning.prepared and bounded:  # PgBouncer knows only a few settings, and refuses the others
        settings["statement_timeout"] = settings["idle_in_transaction_session_timeout"] = str(
            tuning.timeout_ms
        )
    try:
        return await asyncpg.connect(
            url,
            timeout=seconds,
            command_timeout=(seconds + _GRACE_SECONDS if tuning.prepared else seconds) if bounded else None,
            statement_cache_size=100 if tuning.prepared else 0,
            max_cached_statement_lifetime=0,
            server_settings=settings,
        )
    except OSError:
        raise
    except (asyncpg.ClientConfigurationError, ValueError) as error:
        raise ConfigurationError(
            "PETSTORE_DATABASE_URL is not understood; write"
            " postgresql://USER:PASSWORD@HOST:5432/DATABASE, with ?sslmode=verify-full to insist on TLS."
        ) from error
