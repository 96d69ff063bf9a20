"""Delivers webhooks: which ones this process has, and what wakes them. Any number of processes share them.

One poll of the journal serves all, and visits who has something to do. A change of a webhook writes an entry,
so the poll finds that too; all are read then, and the more there are, the longer is the rest.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator

import structlog

from petstore.background.delivery_attempts import AttemptSlots, Tools
from petstore.background.delivery_queue import DeliveryQueue
from petstore.background.sending import Sender
from petstore.core.clock import Clock
from petstore.core.durations import SECOND_MS
from petstore.core.errors import StoreUnavailable
from petstore.core.events import BY_ENTRY, Bookmark, EntrySummary
from petstore.core.secrets_cipher import SecretsCipher
from petstore.core.webhooks import Repetition
from petstore.transactions.deliverers import LEASE_MS, REPETITIONS_READ, Owned
from petstore.transactions.store import Repositories

POLL_SECONDS = 0.1
# How often the store is asked for a webhook while it has none.
_IDLE_SECONDS = 1.0
_CLAIM_SECONDS = LEASE_MS / SECOND_MS / 3
# All webhooks are read again after a rest: 3 times as long as the read if they have changed, or the read was
# cut, else 30 times.
_REST_BY_READ, _LONG_REST_BY_READ = 3, 30
# A rest after visits is at least this many times as long as they were.
_REST_BY_VISITS = 3
# No rest is longer: a read or visits that took very long are of a store or a process that stood still.
_REST_MAX_SECONDS, _REST_OF_VISITS_MAX_SECONDS = 60.0, 1.0
# How often the bookmarks of idle webhooks are saved: a restart reads on from there.
_MOVE_SECONDS = 60.0
_ATTEMPTS_MAX = 1_000
_ATTEMPTS_OF_ACCOUNT_MAX = 250
# Each may read as many entries of the journal as a request.
_READING_MAX = 4
_STOP_SECONDS = 3.0
_MOVED_AT_A_TIME = 1_000
# Entries after which the webhooks are read again: what begins so.
_CHANGES = ("webhook.", "account.suspended", "account.resumed", "account.closed", "store.")

_log = structlog.get_logger("petstore.webhooks")


class Deliverer:
    """The deliveries of this process, under a random name in the store."""

    def __init__(
        self,
        store: Repositories,
        sender: Sender,
        cipher: SecretsCipher,
        clock: Clock,
        *,
        is_alone: bool,
        tried: Callable[[bool], None] = lambda _: None,
    ) -> None:
        """`is_alone`: no other process delivers from this store. `tried` hears whether each attempt was a
        success."""
        self._owner = secrets.token_hex(8)
        self._store, self._clock, self._is_alone = store, clock, is_alone
        slots, reading = (
            AttemptSlots(_ATTEMPTS_MAX, _ATTEMPTS_OF_ACCOUNT_MAX),
            asyncio.Semaphore(_READING_MAX),
        )
        shared = store.deliverers, store.events, sender, cipher, clock, slots, reading, tried
        self._tools = Tools(self._owner, *shared)
        self._queues: dict[int, DeliveryQueue] = {}
        self._of_account: dict[int | None, list[DeliveryQueue]] = {}
        self._awake: set[DeliveryQueue] = set()  # those that are under way, or wait for a moment
        self._leaving: list[DeliveryQueue] = []  # deliveries under way of webhooks that it has no more
        self._polled_to: Bookmark | None = None
        self._claimed_at = self._moved_at = self._read_at = float("-inf")
        self._reading_took = self._visits_took = 0.0
        self._is_changed = False  # since they were read
        self._is_cut = False  # one has more to repeat than is read at a time
        self._trouble = ""

    async def run(self) -> None:
        """Deliver until cancelled; then attempts that are under way have some seconds to end."""
        try:
            while True:
                is_idle = True
                try:
                    is_idle = not await self.poll()
                    self._trouble = ""
                except StoreUnavailable as error:
                    if not self._trouble:
                        self._trouble = error.message
                        _log.warning("webhooks wait", reason=self._trouble)
                except Exception as error:  # of any kind: the jobs of this process go on
                    _log.error("webhooks wait", exc_info=error)
                rest = _IDLE_SECONDS if is_idle else POLL_SECONDS
                of_visits = min(self._visits_took * _REST_BY_VISITS, _REST_OF_VISITS_MAX_SECONDS)
                await asyncio.sleep(max(rest, of_visits))
        finally:
            await self._close()

    async def poll(self) -> bool:
        """Wake what has something to do; False without a webhook in the store. Raises StoreUnavailable."""
        if not self._queues and not await self._store.deliverers.is_needed():
            self._polled_to = None
            return False
        if self._polled_to is None:
            self._polled_to = await self._store.events.newest()
            self._claimed_at = float("-inf")
        summary = await self._store.events.summary_after(self._polled_to.position)
        self._is_changed |= any(kind.startswith(_CHANGES) for kind, _ in summary.types_and_owners)
        self._is_changed |= any(each.is_idle for each in self._leaving)
        now = self._clock.monotonic()
        has_rested = now - self._read_at >= self._reading_took * _REST_BY_READ
        if (self._is_changed and has_rested) or now - self._claimed_at >= _CLAIM_SECONDS:
            await self._claim()
        self._wake(summary)
        if self._clock.monotonic() - self._moved_at >= _MOVE_SECONDS:
            await self._move()
        return True

    def _wake(self, summary: EntrySummary) -> None:
        assert self._polled_to is not None
        before, now_ms, began = self._polled_to.position, self._clock.now_ms(), self._clock.monotonic()
        for each in self._interested(summary):
            each.expect(before)
            self._awake.add(each)
        for each in tuple(self._awake):
            if (at_ms := each.wakes_at_ms) is not None and at_ms <= now_ms:
                each.wake()
            elif at_ms is None and each.is_idle:
                self._awake.remove(each)
        self._polled_to = Bookmark(self._polled_to.data_set, summary.position)
        self._visits_took = self._clock.monotonic() - began

    def _interested(self, summary: EntrySummary) -> Iterator[DeliveryQueue]:
        """The webhooks that get an event of these entries."""
        kinds: defaultdict[int | None, set[str]] = defaultdict(set)
        for kind, owner in summary.types_and_owners:
            kinds[owner].add(kind)
        shared = kinds.pop(None, set())
        if not shared.isdisjoint(BY_ENTRY):
            yield from (each for each in self._queues.values() if not shared.isdisjoint(each.entry_types))
        for owner, own in kinds.items():
            yield from (
                each for each in self._of_account.get(owner, ()) if not own.isdisjoint(each.entry_types)
            )

    async def _claim(self) -> None:
        """Have a fair share of the webhooks, as they are in the store by now."""
        assert self._polled_to is not None
        newest = await self._store.events.newest()
        if newest.data_set != self._polled_to.data_set:  # the store says where each goes on
            self._polled_to = Bookmark(newest.data_set, min(newest.position, self._polled_to.position))
            for each in self._queues.values():
                each.leave()
            self._is_changed = True
        idle = [webhook_id for webhook_id, each in self._queues.items() if each.is_idle]
        own = await self._store.deliverers.claim(self._owner, idle, is_alone=self._is_alone)
        self._is_changed |= own != len(self._queues)
        self._claimed_at = self._clock.monotonic()
        rest = self._reading_took * (_REST_BY_READ if self._is_cut else _LONG_REST_BY_READ)
        if self._is_changed or self._claimed_at - self._read_at >= min(rest, _REST_MAX_SECONDS):
            await self._read()

    async def _read(self) -> None:
        began = self._clock.monotonic()
        for each in self._queues.values():
            each.await_repetitions()
        self._have(await self._store.deliverers.owned(self._owner))
        self._is_changed, self._read_at = False, self._clock.monotonic()
        self._reading_took = self._read_at - began

    def _have(self, owned: Owned) -> None:
        due: defaultdict[int, list[Repetition]] = defaultdict(list)
        for webhook_id, repetition in owned.repetitions:
            due[webhook_id].append(repetition)
        self._is_cut = any(len(each) >= REPETITIONS_READ for each in due.values())
        before, self._queues = self._queues, {}
        for webhook in owned.webhooks:
            if webhook.id in before and before[webhook.id].is_still(webhook):
                self._queues[webhook.id] = before.pop(webhook.id)
                self._queues[webhook.id].configure(webhook, due[webhook.id])
        for each in before.values():
            each.leave()
        # Only the same webhook waits for its attempts that are under way.
        self._leaving = [each for each in (*self._leaving, *before.values()) if not each.is_idle]
        held = {*self._queues, *(each.webhook.id for each in self._leaving)}
        for webhook in owned.webhooks:
            if webhook.id not in held:
                self._queues[webhook.id] = DeliveryQueue(webhook, due[webhook.id], self._tools)
                self._queues[webhook.id].wake()
        of_account: defaultdict[int | None, list[DeliveryQueue]] = defaultdict(list)
        for each in self._queues.values():
            of_account[each.webhook.account_id].append(each)
        self._of_account, self._awake = of_account, set(self._queues.values())

    async def _move(self) -> None:
        """Save how far idle webhooks have come."""
        assert self._polled_to is not None
        still = [each for each in self._queues.values() if each.can_move_to(self._polled_to)]
        for start in range(0, len(still), _MOVED_AT_A_TIME):
            those = still[start : start + _MOVED_AT_A_TIME]
            ids = [each.webhook.id for each in those]
            await self._store.deliverers.move(self._owner, ids, self._polled_to)
            for each in those:
                each.move(self._polled_to)
        self._moved_at = self._clock.monotonic()

    async def _close(self) -> None:
        those = (*self._queues.values(), *self._leaving)
        await DeliveryQueue.close(those, _STOP_SECONDS)
        try:
            await self._store.deliverers.release(self._owner)
        except StoreUnavailable as error:
            _log.warning("webhooks are not released", reason=error.message)
