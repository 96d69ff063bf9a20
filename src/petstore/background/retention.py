"""Removes what is kept no longer, once an hour, and gently: a step of milliseconds, then a long rest."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import TypeVar

import structlog

from petstore.core.clock import Clock
from petstore.core.durations import DAY_MS, HOUR_MS, SECOND_MS
from petstore.core.errors import StoreUnavailable
from petstore.core.moments import iso_moment
from petstore.transactions.retention import Part, Retention

_EVERY_SECONDS = HOUR_MS / SECOND_MS
# How many times as long as the step before it a rest is: on SQLite other writes wait for a step.
_REST = 20
# Bills of a whole year are made when it is over.
USAGE_KEPT_MS = 400 * DAY_MS
TRIES_KEPT_MS = REFUSALS_KEPT_MS = 30 * DAY_MS

_T = TypeVar("_T")
_log = structlog.get_logger("petstore.jobs")


async def run(retention: Retention, clock: Clock, keep_ms: int | None) -> None:
    """Remove until cancelled."""
    while True:
        try:
            await remove_old(retention, clock, keep_ms)
        except StoreUnavailable as error:
            _log.warning("removal failed", reason=str(error))
        await asyncio.sleep(_EVERY_SECONDS)


async def remove_old(retention: Retention, clock: Clock, keep_ms: int | None) -> None:
    """Remove failed attempts of webhooks older than TRIES_KEPT_MS, refused requests older than
    REFUSALS_KEPT_MS, what webhooks had that were removed, with a `keep_ms` entries older than that, and usage
    older than both that and USAGE_KEPT_MS.

    Of several processes the last one that begins goes on. Raises StoreUnavailable.
    """
    removed = Counter(entries=0, usage_days=0, webhooks=0, webhook_tries=0, refusals=0)
    now_ms = clock.now_ms()
    try:
        for kind, kept_ms in (("webhook_tries", TRIES_KEPT_MS), ("refusals", REFUSALS_KEPT_MS)):
            await _remove(retention, clock, kind, now_ms - kept_ms, removed)
        if keep_ms is not None:
            await _remove_journal(retention, clock, now_ms - keep_ms, removed)
        part = Part()
        while step := await _gently(clock, retention.remove_webhook(part)):
            part, removed["webhooks"] = step, removed["webhooks"] + (step == Part(step.webhook_id))
    finally:
        if removed.total():
            kept = {} if keep_ms is None else {"kept_since": iso_moment(now_ms - keep_ms)}
            _log.info("removed", **removed, **kept)


async def _remove_journal(retention: Retention, clock: Clock, since_ms: int, removed: Counter[str]) -> None:
    last, gone = await retention.last_before(since_ms), None
    while step := await _gently(clock, retention.remove_entries(since_ms, last, gone)):
        gone, removed["entries"] = step.gone, removed["entries"] + step.entries
    # They were counted when what they had left.
    await _remove(retention, clock, "webhooks", since_ms, Counter())
    before_day = min(since_ms, clock.now_ms() - USAGE_KEPT_MS) // DAY_MS
    await _remove(retention, clock, "usage_days", before_day, removed)


async def _remove(retention: Retention, clock: Clock, kind: str, before: int, removed: Counter[str]) -> None:
    while count := await _gently(clock, retention.remove(kind, before)):
        removed[kind] += count


async def _gently(clock: Clock, step: Awaitable[_T]) -> _T:
    began = clock.monotonic()
    done = await step
    await asyncio.sleep(_REST * (clock.monotonic() - began))
    return done
