"""Requests that wait for events: one poll of the journal for all of them, and none while nobody waits.

A commit of this process starts a poll at once; those of other processes wait for up to POLL_SECONDS.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from petstore.core.errors import StoreUnavailable
from petstore.core.events import RESTORED, EventPage, EventQuery, Position
from petstore.core.keys import Caller
from petstore.core.limits.plans import WAITS_MAX
from petstore.transactions.events import Events

POLL_SECONDS = 0.1
# Between two polls, however many commits there are.
_PAUSE_SECONDS = 0.005
# A commit may wake thousands: this many use the store at once, and other requests come between.
_SLOTS = 4


class _Waiter(msgspec.Struct, eq=False):
    """`woken`: whether there may be an event; False when the wait is over."""

    query: EventQuery
    woken: asyncio.Future[bool]

    def wake(self, has_news: bool = True) -> None:
        if not self.woken.done():
            self.woken.set_result(has_news)

    def end(self, _: object = None) -> None:
        self.wake(False)


class Waits:
    """The requests of this process that wait. Set `committed` after each commit. When they have waited, they
    take one of `slots` to use the store."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._by_account: Counter[int] = Counter()
        self._waiters: set[_Waiter] = set()
        self.committed = asyncio.Event()
        self.slots = asyncio.Semaphore(_SLOTS)
        self._position = Position()  # how far the last poll has read
        self._polling: asyncio.Task[None] | None = None
        self.has_ended = False

    def __len__(self) -> int:
        return self._by_account.total()

    def can_wait(self, caller: Caller) -> bool:
        """Whether the account has fewer waiting requests than its plan allows; not after `end`."""
        return not self.has_ended and self._by_account[caller.account_id] < WAITS_MAX.get(caller.plan, 1)

    async def wait(
        self, caller: Caller, query: EventQuery, page: EventPage, seconds: float, gone: Awaitable[None]
    ) -> EventPage:
        """The page that follows an empty one, as soon as it has an event; an empty one after `seconds`, at
        a stop, or when the client is gone."""
        self._by_account[caller.account_id] += 1
        over = asyncio.ensure_future(gone)
        timer = asyncio.get_running_loop().call_later(seconds, over.cancel)
        try:
            while await self._await_events(replace(query, after=page.after), over):
                async with self.slots:
                    page = await self._events.page(replace(query, after=page.after))
                if page.events or page.is_behind:
                    break
        finally:
            timer.cancel()
            over.cancel()
            self._by_account[caller.account_id] -= 1
            if not self._by_account[caller.account_id]:
                del self._by_account[caller.account_id]
        return page

    async def _await_events(self, query: EventQuery, over: asyncio.Future[None]) -> bool:
        """Wait until there may be an event after the query's bookmark; False when it is over."""
        if self.has_ended or over.done():
            return False
        assert query.after is not None
        if self._polling is None:
            self._position = query.after.position
            self._polling = asyncio.create_task(self._keep_polling())
        elif self._position > query.after.position:
            # The poll may have passed an event before it knew of this waiter; or it began with a bookmark of
            # a time to come, or before the data were restored.
            self._position = query.after.position
            self.committed.set()
        waiter = _Waiter(query, asyncio.get_running_loop().create_future())
        self._waiters.add(waiter)
        over.add_done_callback(waiter.end)
        try:
            return await waiter.woken
        finally:
            self._waiters.discard(waiter)
            over.remove_done_callback(waiter.end)

    def end(self) -> None:
        """Answer all that wait; nobody waits any more."""
        self.has_ended = True
        for waiter in self._waiters:
            waiter.end()

    async def close(self) -> None:
        """End all waits, and the poll that serves them; called before the store is closed."""
        self.end()
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.wait([self._polling])

    async def _keep_polling(self) -> None:
        try:
            while self._by_account:
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self.committed.wait()
                self.committed.clear()
                with suppress(StoreUnavailable):
                    await self._poll()
                await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            self._polling = None
            for waiter in self._waiters:  # after an error that nobody expects
                waiter.end()

    async def _poll(self) -> None:
        after = self._position
        summary = await self._events.summary_after(after)
        if self._position == after:  # else a waiter has set an earlier one
            self._position = summary.position
        is_restored = any(kind == RESTORED for kind, _ in summary.types_and_owners)  # bookmarks have ended
        for waiter in self._waiters if summary.types_and_owners else ():
            query = waiter.query
            if is_restored or any(
                kind in query.entry_types and owner in (None, query.account_id)
                for kind, owner in summary.types_and_owners
            ):
                waiter.wake()
