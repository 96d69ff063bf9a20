"""Delivers webhooks: which ones this process has, and what wakes them. Any number of processes share them.

One look at the journal serves all; a webhook without events costs nothing more. A change of a webhook writes
an entry, so the look finds that too.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Callable

import structlog

from petstore.background.endpoints import Deliveries
from petstore.background.sending import Sender
from petstore.background.trying import Tools, Turns
from petstore.core.clock import Clock
from petstore.core.durations import SECOND_MS
from petstore.core.errors import StoreUnavailable
from petstore.core.events import Bookmark, News
from petstore.core.sealing import Seal
from petstore.core.webhooks import Repetition
from petstore.transactions.deliverers import LEASE_MS, Owned
from petstore.transactions.store import Parts

LOOK_SECONDS = 0.1
# How often the store is asked for a webhook while it has none.
_IDLE_SECONDS = 1.0
_CLAIM_SECONDS = LEASE_MS / SECOND_MS / 3
# How often the places of idle webhooks are noted: a restart reads on from there.
_MOVE_SECONDS = 60.0
_TRIES_MAX = 1_000
_TRIES_OF_ACCOUNT_MAX = 250
# Each may read as many entries of the journal as a request.
_READING_MAX = 4
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
        turns, reading = Turns(_TRIES_MAX, _TRIES_OF_ACCOUNT_MAX), asyncio.Semaphore(_READING_MAX)
        shared = store.deliverers, store.events, sender, seal, clock, turns, reading, tried
        self._tools = Tools(self._owner, *shared)
        self._deliveries: dict[int, Deliveries] = {}
        self._leaving: list[Deliveries] = []  # deliveries under way of webhooks that it has no more
        self._looked_to: Bookmark | None = None
        self._claimed_at = self._moved_at = float("-inf")
        self._trouble = ""

    async def run(self) -> None:
        """Deliver until cancelled; then tries that are under way have some seconds to end."""
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
                except Exception as error:  # of any kind: the jobs of this process go on
                    is_idle = True
                    _log.error("webhooks wait", exc_info=error)
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
            self._claimed_at = float("-inf")
        news = await self._store.events.news(self._looked_to.position)
        is_changed = any(kind.startswith(_CHANGES) for kind, _ in news.seen)
        has_left = any(each.is_idle for each in self._leaving)
        if is_changed or has_left or self._clock.monotonic() - self._claimed_at >= _CLAIM_SECONDS:
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
        assert self._looked_to is not None
        newest = await self._store.events.newest()
        if newest.data_set != self._looked_to.data_set:  # the store says where each goes on
            self._looked_to = Bookmark(newest.data_set, min(newest.position, self._looked_to.position))
            for each in self._deliveries.values():
                each.leave()
        idle = [webhook_id for webhook_id, each in self._deliveries.items() if each.is_idle]
        await self._store.deliverers.claim(self._owner, idle, is_alone=self._is_alone)
        for each in self._deliveries.values():
            each.await_repetitions()
        self._have(await self._store.deliverers.owned(self._owner))
        self._claimed_at = self._clock.monotonic()

    def _have(self, owned: Owned) -> None:
        due: defaultdict[int, list[Repetition]] = defaultdict(list)
        for webhook_id, repetition in owned.repetitions:
            due[webhook_id].append(repetition)
        before, self._deliveries = self._deliveries, {}
        for endpoint in owned.endpoints:
            if endpoint.id in before and before[endpoint.id].is_still(endpoint):
                self._deliveries[endpoint.id] = before.pop(endpoint.id)
                self._deliveries[endpoint.id].configure(endpoint, due[endpoint.id])
        for each in before.values():
            each.leave()
        # Only the same webhook waits for its tries that are under way.
        self._leaving = [each for each in (*self._leaving, *before.values()) if not each.is_idle]
        held = {*self._deliveries, *(each.endpoint.id for each in self._leaving)}
        for endpoint in owned.endpoints:
            if endpoint.id not in held:
                self._deliveries[endpoint.id] = Deliveries(endpoint, due[endpoint.id], self._tools)
                self._deliveries[endpoint.id].wake()

    async def _move(self) -> None:
        """Note how far idle webhooks have come."""
        assert self._looked_to is not None
        still = [each for each in self._deliveries.values() if each.can_move_to(self._looked_to)]
        if still:
            ids = [each.endpoint.id for each in still]
            await self._store.deliverers.move(self._owner, ids, self._looked_to)
            for each in still:
                each.move(self._looked_to)
        self._moved_at = self._clock.monotonic()

    async def _close(self) -> None:
        those = (*self._deliveries.values(), *self._leaving)
        await asyncio.gather(*(each.close(_STOP_SECONDS) for each in those))
        try:
            await self._store.deliverers.release(self._owner)
        except StoreUnavailable as error:
            _log.warning("webhooks are not released", reason=error.message)
