"""How a command reaches the store, and what its errors become: one line and an exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from petstore import bootstrap
from petstore.clock import SystemClock
from petstore.config import Settings
from petstore.errors import ConfigurationError, PetstoreError, Unavailable
from petstore.storage import Store

EXIT_REFUSED = 1
EXIT_UNAVAILABLE = 75  # EX_TEMPFAIL
EXIT_CONFIGURATION = 78  # EX_CONFIG

_T = TypeVar("_T")


def with_store(settings: Settings, work: Callable[[Store], Awaitable[_T]]) -> _T:
    """Open the store, do the work, close the store."""

    async def run() -> _T:
        store = bootstrap.open_store(settings, SystemClock())
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def explain(error: Exception) -> int:
    """Print an error as one line on standard error and give the exit code."""
    message = error.message if isinstance(error, PetstoreError) else str(error)
    click.echo(f"petstore: {message}", err=True)
    if isinstance(error, ConfigurationError):
        return EXIT_CONFIGURATION
    return EXIT_UNAVAILABLE if isinstance(error, Unavailable) else EXIT_REFUSED
