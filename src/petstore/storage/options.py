"""The options of a backend, which wiring/administration.py makes of the settings."""

from __future__ import annotations

import msgspec

from petstore.core.stages import Stage


class SqliteOptions(msgspec.Struct, frozen=True):
    """The options of a file: writes that may wait in the process, and how long to wait for another process's.

    Data of another `stage` are refused, on a server too. `reads_only` leaves the file as it is: writes fail.
    """

    write_queue: int = 1_024
    busy_timeout_ms: int = 5_000
    stage: Stage | None = None
    reads_only: bool = False


class PostgresOptions(msgspec.Struct, frozen=True):
    """The options of a server. `timeout_ms` bounds a statement and the wait for one of the `connections`.

    `max_waiters` requests may wait for a connection. Without `prepared` statements it works behind PgBouncer.
    """

    timeout_ms: int = 5_000
    connections: int = 10
    max_waiters: int = 1_024
    prepared: bool = True
    stage: Stage | None = None
