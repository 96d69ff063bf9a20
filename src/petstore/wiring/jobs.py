"""Joins the background process: its store, its jobs, the facts that it records, what it sends and removes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from petstore import __version__
from petstore.background import jobs, retention, search
from petstore.background.deliverer import Deliverer
from petstore.background.facts import FactRecorder
from petstore.background.imports import Imports
from petstore.background.list_reverts import ListReverter
from petstore.background.mailing import Mailer
from petstore.background.notifier import Notifier
from petstore.background.sending import Sender
from petstore.config import Settings
from petstore.core.clock import Clock, SystemClock
from petstore.core.secrets_cipher import SecretsCipher
from petstore.ops.webhooks import DeliveryCounts
from petstore.storage.backend import Backend
from petstore.storage.store import Store
from petstore.wiring.administration import backend_of, store_for_command
from petstore.wiring.mail import mail_of
from petstore.wiring.operations import guard_of

_log = structlog.get_logger("petstore.jobs")


async def carry_out_jobs(
    settings: Settings, metrics_directory: Path | None, ready: Callable[[], None]
) -> None:
    """Do all of it until cancelled. Raises ConfigurationError and StoreUnavailable when it can't begin.

    `metrics_directory`: where the workers exchange their metrics.
    """
    clock = SystemClock()
    settings = msgspec.structs.replace(settings, database_pool=1)  # and one for an import
    backend = backend_of(settings)
    store = store_for_command(settings, backend, clock, _say)
    async with store as opened, asyncio.TaskGroup() as group:
        ready()
        group.create_task(jobs.run(opened.jobs, [Imports(opened), ListReverter(opened)]))
        group.create_task(FactRecorder(opened.facts, clock, settings.removal_at_ms).run())
        if settings.has_console:  # which alone searches
            group.create_task(search.run(opened.search, clock))
        if settings.deliveries:
            counts = DeliveryCounts(metrics_directory)
            group.create_task(_deliver(settings, backend, opened, clock, counts))
            group.create_task(_notify(settings, opened, clock, counts))
        group.create_task(retention.run(opened.retention, clock, settings.journal_keep_ms))


async def _deliver(
    settings: Settings, backend: Backend, store: Store, clock: Clock, counts: DeliveryCounts
) -> None:
    cipher, is_alone = SecretsCipher(settings.secrets_key), backend.file is not None
    sender = Sender(guard_of(settings), proxy=settings.webhook_proxy, clock=clock, version=__version__)
    try:
        async with sender:
            await Deliverer(store, sender, cipher, clock, is_alone=is_alone, tried=counts.tried).run()
    finally:
        counts.share()


async def _notify(settings: Settings, store: Store, clock: Clock, counts: DeliveryCounts) -> None:
    mail = mail_of(settings)
    if mail is None:
        return
    server, head = mail
    async with Mailer(server) as mailer:
        await Notifier(store, mailer, head, clock, mailed=counts.mailed).run()


def _say(text: str) -> None:
    _log.info("waiting", message=text)
