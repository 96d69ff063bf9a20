"""Delivers webhooks: which ones this process has, and what wakes them. Any number of processes share them.

One look at the journal serves all; a webhook that nothing is for costs nothing more. Who changes a webhook
writes an entry, so the look tells of that too.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable

import structlog

from petstore.background.endpoints import Deliveries
from petstore.background.sending import Sender
from petstore.background.trying import Tools
from petstore.core.clock import Clock
from petstore.core.durations import SECOND_MS
from petstore.core.errors import StoreUnavailable
from petstore.core.events import Bookmark, News
from petstore.core.sealing import Seal
from petstore.core.webhooks import Repetition
from petstore.transactions.deliverers import LEASE_MS
from petstore.transactions.store import Parts

LOOK_SECONDS = 0.1
# While there is no webhook in the store, it is asked for one so often.
_IDLE_SECONDS = 1.0
_CLAIM_SECONDS = LEASE_MS / SECOND_MS / 3
# How far webhooks have come that nothing was for: what a restart reads again.
_MOVE_SECONDS = 60.0
_TRIES_MAX = 1_000
_STOP_SECONDS = 3.0
# Entries after which the webhooks are read again: of these subjects, and a restore.
_CHANGES = ("webhook.", "account.", "store.")

_log = structlog.get_logger("petstore.webhooks")


class Deliverer:
    """The deliveries of this process, under a random name in the store."""

    def __init__(
        self,
        store: Parts,
        sender: Sender,
        seal: Seal,
        clock: Clock,
        *,
        is_alone: bool,
        tried: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """`is_alone`: no other process delivers from this store. `tried` hears whether each try was a
        success."""
        self._owner = secrets.token_hex(8)
        self._store, self._clock, self._is_alone = store, clock, is_alone
        turns = asyncio.Semaphore(_TRIES_MAX)
        self._tools = Tools(self._owner, store.deliverers, store.events, sender, seal, clock, turns, tried)
        self._deliveries: dict[int, Deliveries] = {}
        self._looked_to: Bookmark | None = None
        self._claimed_at = self._moved_at = float("-inf")
        self._trouble = ""

    async def run(self) -> None:
        """Deliver until cancelled; then what is under way has some seconds to end."""
        try:
            while True:
                try:
                    is_idle = not await self.look()
                    self._trouble = ""
                except StoreUnavailable as error:
                    is_idle = True
                    if not self._trouble:
                        self._trouble = error.message
                        _log.warning("webhooks wait", reason=self._trouble)
                await asyncio.sleep(_IDLE_SECONDS if is_idle else LOOK_SECONDS)
        finally:
            await self._close()

    async def look(self) -> bool:
        """Wake what has something to do; False without a webhook in the store. Raises StoreUnavailable."""
        if not self._deliveries and not await self._store.deliverers.is_needed():
            self._looked_to = None
            return False
        if self._looked_to is None:
            self._looked_to = await self._store.events.newest()
        news = await self._store.events.news(self._looked_to.position)
        is_changed = any(kind.startswith(_CHANGES) for kind, _ in news.seen)
        if is_changed or self._clock.monotonic() - self._claimed_at >= _CLAIM_SECONDS:
            await self._claim()
        self._tell(news)
        if self._clock.monotonic() - self._moved_at >= _MOVE_SECONDS:
            await self._move()
        return True

    def _tell(self, news: News) -> None:
        assert self._looked_to is not None
        before, now_ms = self._looked_to.position, self._clock.now_ms()
        for deliveries in self._deliveries.values():
            account_id, entries = deliveries.endpoint.account_id, deliveries.entries
            if any(kind in entries and owner in (None, account_id) for kind, owner in news.seen):
                deliveries.expect(before)
            elif (at_ms := deliveries.wakes_at_ms) is not None and at_ms <= now_ms:
                deliveries.wake()
        self._looked_to = Bookmark(self._looked_to.data_set, news.position)

    async def _claim(self) -> None:
        """Have a fair share of the webhooks, as they are in the store by now."""
        idle = [webhook_id for webhook_id, each in self._deliveries.items() if each.is_idle]
        await self._store.deliverers.claim(self._owner, idle, is_alone=self._is_alone)
        owned = await self._store.deliverers.owned(self._owner)
        repetitions: dict[int, list[Repetition]] = {}
        for webhook_id, repetition in owned.repetitions:
            repetitions.setdefault(webhook_id, []).append(repetition)
        before, self._deliveries = self._deliveries, {}
        for endpoint in owned.endpoints:
            due = repetitions.get(endpoint.id, [])
            deliveries = before.get(endpoint.id)
            if deliveries is not None and not deliveries.is_lost:
                deliveries.configure(endpoint)
                deliveries.add(due)
            else:
                deliveries = Deliveries(endpoint, due, self._tools)
                deliveries.wake()
            self._deliveries[endpoint.id] = deliveries
        await _close_all(each for each in before.values() if each not in self._deliveries.values())
        self._claimed_at = self._clock.monotonic()

    async def _move(self) -> None:
        """Note how far the webhooks have come that nothing was for."""
        assert self._looked_to is not None
        still = [
            webhook_id
            for webhook_id, each in self._deliveries.items()
            if each.is_idle and each.has_read_all and each.place != self._looked_to
        ]
        if still:
            await self._store.deliverers.move(self._owner, still, self._looked_to)
        self._moved_at = self._clock.monotonic()

    async def _close(self) -> None:
        await _close_all(self._deliveries.values())
        try:
            await self._store.deliverers.release(self._owner)
        except StoreUnavailable as error:
            _log.warning("webhooks are not released", reason=error.message)


async def _close_all(those: Iterable[Deliveries]) -> None:
    await asyncio.gather(*(each.close(_STOP_SECONDS) for each in those))
