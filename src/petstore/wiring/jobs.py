"""Joins the background process: its store, its jobs, the facts that it tells, and what it removes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from petstore.background import jobs, retention
from petstore.background.facts import Teller
from petstore.background.imports import Imports
from petstore.config import Settings
from petstore.core.clock import SystemClock
from petstore.wiring.administration import backend_of, store_for_command

_log = structlog.get_logger("petstore.jobs")


async def carry_out_jobs(settings: Settings, ready: Callable[[], None]) -> None:
    """Do all of it until cancelled. Raises ConfigurationError and StoreUnavailable when it can't begin."""
    clock = SystemClock()
    settings = msgspec.structs.replace(settings, database_pool=1)  # and one for an import
    store = store_for_command(settings, backend_of(settings), clock, _say)
    async with store as opened, asyncio.TaskGroup() as group:
        ready()
        group.create_task(jobs.run(opened.jobs, [Imports(opened)]))
        group.create_task(Teller(opened.facts, clock).run())
        if settings.journal_keep_ms is not None:
            group.create_task(retention.run(opened.retention, clock, settings.journal_keep_ms))


def _say(text: str) -> None:
    _log.info("waiting", message=text)
