"""Events: one page of them, or as they come. How far a follower has come is in feed.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import suppress

from petstore_client._async.runner import AsyncRunner
from petstore_client.feed import NOW, Feed, list_events
from petstore_client.models import Event, EventPage
from petstore_client.waiters import AsyncWaiter, Ended


class AsyncFollow(AsyncIterator[Event]):
    """Events as they come, for ever; for one thread or task at a time.

    After an exception, a cancellation too, the next step goes on where it was.
    """

    def __init__(self, runner: AsyncRunner, feed: Feed) -> None:
        self._runner = runner
        self._feed = feed
        self._has_ended = False
        self._waiter: AsyncWaiter | None = None  # waits for the current call

    @property
    def after(self) -> str | None:
        """The bookmark to store once the last event is dealt with; None while the beginning has no event.

        It moves on with the last event of each page, so that a program that goes on from it misses no event,
        and gets at most 99 events again, those since the bookmark, in the same order and with the same `id`.
        """
        return self._feed.after

    def close(self) -> None:
        """End the iteration, also a wait in another thread, or in another task of the same event loop.

        In a thread an attempt to connect ends within `timeout`.
        """
        self._has_ended = True
        if self._waiter is not None:
            self._waiter.end()

    async def __anext__(self) -> Event:
        self._runner.pool.add_follower(self)
        while True:
            waiter = self._waiter = AsyncWaiter()
            if self._has_ended:  # asked when `close` can reach the waiter
                raise StopAsyncIteration
            if (event := self._feed.take()) is not None:
                return event
            with suppress(Ended):
                await self._fetch(waiter)

    async def _fetch(self, waiter: AsyncWaiter) -> None:
        clock = self._runner.connection.runtime.monotonic
        async with waiter.until_end():
            page = await self._runner.run(self._feed.call(clock()), waiter)
            self._feed.answered(page, clock())


class AsyncEvents:
    """What has changed: animals, categories, and the account with its orders, keys and webhooks."""

    def __init__(self, runner: AsyncRunner) -> None:
        self._runner = runner

    async def list(
        self, *, after: str | None = None, types: Iterable[str] = (), limit: int = 20, wait: int = 0
    ) -> EventPage:
        """At most `limit` (1 to 100) events after a bookmark. Raises EventsGone. Needs level read.

        Without `after` from the store's first event; `after="now"` has no event, and the bookmark of this
        moment. `types` are such as `pet.updated` or `pet.*`, all without any. When there is no event, the
        answer is held back until one comes, at most `wait` seconds (0 to 120) beside the call's own.
        """
        return await self._runner.run(list_events(after, types, limit, wait))

    def follow(self, *, after: str | None = NOW, types: Iterable[str] = (), wait: int = 55) -> AsyncFollow:
        """Events after a bookmark as they come, for ever, until the client is closed. Needs level read.

        `after` and `types` are as for `list`; "now" is the moment of the first step. Each request waits for
        `wait` seconds (0 to 120), which proxies on the way must allow. Lost connections, restarts of the
        service and limits end nothing, whatever the client's `tries` and `seconds`; other errors are raised,
        such as EventsGone. It leaves half of each limit to other calls: when it has had the other half, it
        asks more seldom.
        """
        return AsyncFollow(self._runner, Feed(after, types, wait))
