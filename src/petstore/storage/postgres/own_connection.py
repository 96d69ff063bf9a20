"""Runs work on a connection of its own, outside the pool and the caller's event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qsl

from petstore.core.errors import ConfigurationError
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres.connection import connect_first
from petstore.storage.postgres.faults import is_the_drivers, translate_at_start
from petstore.storage.postgres.pool import Connection, close_connection

_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_T = TypeVar("_T")


def on_connection(
    url: str, options: PostgresOptions, work: Callable[[Connection], Awaitable[_T]], *, bounded: bool = True
) -> _T:
    """Run `work` on an event loop of its own: in a thread where the caller is in one, else here.

    A thread that ends holds locks of OpenSSL for a moment, also after a `join`. A worker that is forked then
    waits for them for ever. Without `bounded` its statements have no timeout. Raises ConfigurationError,
    StoreUnavailable.
    """
    check_files(url)

    async def connected() -> _T:
        connection = await connect_first(url, options, bounded=bounded)
        try:
            return await work(connection)
        finally:
            await close_connection(connection)

    try:
        if not _has_loop():
            return asyncio.run(connected())
        with ThreadPoolExecutor(1, "petstore-upkeep") as thread:
            return thread.submit(lambda: asyncio.run(connected())).result()
    except Exception as error:
        if is_the_drivers(error):
            raise translate_at_start(error) from error
        raise


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def check_files(url: str) -> None:
    """Raise ConfigurationError for a file of the address that can't be used: the driver reports an outage."""
    for name, path in parse_qsl(url.partition("?")[2]):
        if name in _FILES:
            try:
                Path(path).open("rb").close()
                if name == "sslrootcert":
                    ssl.create_default_context(cafile=path)
            except OSError as error:
                reason = "it holds no certificate" if isinstance(error, ssl.SSLError) else error.strerror
                raise ConfigurationError(
                    f"PETSTORE_DATABASE_URL: {path} can't be used as its {name}: {reason}."
                ) from error
