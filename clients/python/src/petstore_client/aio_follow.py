"""Events for asyncio. follow.py is the same for threads; what both do is in feed.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress

from petstore_client.calls import Call
from petstore_client.feed import NOW, Feed, list_events
from petstore_client.models import Event, EventPage
from petstore_client.pool import AsyncPool

_Run = Callable[[Call[EventPage]], Awaitable[EventPage]]


class AsyncFollow(AsyncIterator[Event]):
    """Events as they come, for ever; for one task at a time.

    After an exception, a cancellation too, the next `anext` goes on where it was.
    """

    def __init__(self, run: _Run, pool: AsyncPool, clock: Callable[[], float], feed: Feed) -> None:
        self._run = run
        self._pool = pool
        self._clock = clock
        self._feed = feed
        self._has_ended = False
        self._call: asyncio.Timeout | None = None  # the present one

    @property
    def after(self) -> str | None:
        """The bookmark to store once the last event is dealt with; None while the beginning has no event.

        It moves on with the last event of each page, so that a program that goes on from it misses no event,
        and gets at most 99 events again, those since the bookmark, in the same order and with the same `id`.
        """
        return self._feed.after

    def close(self) -> None:
        """End the iteration, also a wait in another task of the same event loop."""
        self._has_ended = True
        if self._call is not None:
            with suppress(RuntimeError):  # it is over
                self._call.reschedule(0)

    async def __anext__(self) -> Event:
        self._pool.add_follower(self)
        while not self._has_ended:
            if (event := self._feed.take()) is not None:
                return event
            try:
                async with asyncio.timeout(None) as self._call:
                    page = await self._run(self._feed.call(self._clock()))
                    self._feed.answered(page, self._clock())
            except TimeoutError:
                if not self._has_ended:
                    raise
        raise StopAsyncIteration


class AsyncEvents:
    """What has changed: animals, categories, and the account's own orders and keys."""

    def __init__(self, run: _Run, pool: AsyncPool, clock: Callable[[], float]) -> None:
        self._run = run
        self._pool = pool
        self._clock = clock

    async def list(
        self, *, after: str | None = None, types: Iterable[str] = (), limit: int = 20, wait: int = 0
    ) -> EventPage:
        """At most `limit` (1 to 100) events behind a bookmark; raises EventsGone. read.

        Without `after` from the store's first event; `after="now"` has no event, and the bookmark of this
        moment. `types` are such as `pet.updated` or `pet.*`, all without any. When there is no event, the
        answer is held back until one comes, at most `wait` seconds (0 to 120) beside those of the call.
        """
        return await self._run(list_events(after, types, limit, wait))

    def follow(self, *, after: str | None = NOW, types: Iterable[str] = (), wait: int = 55) -> AsyncFollow:
        """Events behind a bookmark as they come, for ever, until the client is closed. read.

        `after` and `types` are as for `list`; "now" is the moment of the first `next`. Each request waits for
        `wait` seconds (0 to 120), which proxies on the way must allow. Lost connections, restarts of the
        service and limits end nothing, whatever the client's `tries` and `seconds`; other errors are raised,
        such as EventsGone. It leaves half of each limit to other calls: when it has had the other half, it
        asks more seldom.
        """
        return AsyncFollow(self._run, self._pool, self._clock, Feed(after, types, wait))
