"""Events for threads. aio_follow.py is the same for asyncio; what both do is in feed.py."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx2

from petstore_client.calls import Call
from petstore_client.feed import NOW, Feed, list_events
from petstore_client.models import Event, EventPage
from petstore_client.pool import Pool


class Ended(Exception):
    """The client, or the Follow, was closed."""


class Waiter:
    """Sleeps on an event of its own. `end` ends its call from any thread."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.has_ended = False
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None  # that the call reads from

    def wake(self) -> None:
        self.event.set()

    def end(self) -> None:
        """Wake a thread that sleeps or reads. Closing the connection would not end its read."""
        with self._lock:
            self.has_ended = True
            if self._socket is not None:
                with suppress(OSError):  # it has just been closed
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self.wake()

    def check(self) -> None:
        """Raise Ended after `end`."""
        if self.has_ended:
            raise Ended

    @contextmanager
    def reading(self, stream: Any) -> Iterator[None]:
        """While the call reads from a connection of httpx2."""
        with self._lock:
            if self.has_ended:
                raise httpx2.ReadError("The client was closed.")
            self._socket = stream.get_extra_info("socket")
        try:
            yield
        finally:
            with self._lock:
                self._socket = None


_Run = Callable[[Call[EventPage], Waiter], EventPage]


class Follow(Iterator[Event]):
    """Events as they come, for ever; for one thread at a time.

    After an exception the next `next` goes on where it was.
    """

    def __init__(self, run: _Run, pool: Pool, clock: Callable[[], float], feed: Feed) -> None:
        self._run = run
        self._pool = pool
        self._clock = clock
        self._feed = feed
        self._waiter = Waiter()

    @property
    def after(self) -> str | None:
        """The bookmark to store once the last event is dealt with; None while the beginning has no event.

        It moves on with the last event of each page, so that a program that goes on from it misses no event,
        and gets at most 99 events again, those since the bookmark, in the same order and with the same `id`.
        """
        return self._feed.after

    def close(self) -> None:
        """End the iteration, also a wait in another thread, and within `timeout` an attempt to connect."""
        self._waiter.end()

    def __next__(self) -> Event:
        self._pool.add_follower(self)
        while not self._waiter.has_ended:
            if (event := self._feed.take()) is not None:
                return event
            with suppress(Ended):
                page = self._run(self._feed.call(self._clock()), self._waiter)
                self._feed.answered(page, self._clock())
        raise StopIteration


class Events:
    """What has changed: animals, categories, and the account's own orders and keys."""

    def __init__(self, run: _Run, pool: Pool, clock: Callable[[], float]) -> None:
        self._run = run
        self._pool = pool
        self._clock = clock

    def list(
        self, *, after: str | None = None, types: Iterable[str] = (), limit: int = 20, wait: int = 0
    ) -> EventPage:
        """At most `limit` (1 to 100) events behind a bookmark; raises EventsGone. read.

        Without `after` from the store's first event; `after="now"` has no event, and the bookmark of this
        moment. `types` are such as `pet.updated` or `pet.*`, all without any. When there is no event, the
        answer is held back until one comes, at most `wait` seconds (0 to 120) beside those of the call.
        """
        return self._run(list_events(after, types, limit, wait), Waiter())

    def follow(self, *, after: str | None = NOW, types: Iterable[str] = (), wait: int = 55) -> Follow:
        """Events behind a bookmark as they come, for ever, until the client is closed. read.

        `after` and `types` are as for `list`; "now" is the moment of the first `next`. Each request waits for
        `wait` seconds (0 to 120), which proxies on the way must allow. Lost connections, restarts of the
        service and limits end nothing, whatever the client's `tries` and `seconds`; other errors are raised,
        such as EventsGone. It leaves half of each limit to other calls: when it has had the other half, it
        asks more seldom.
        """
        return Follow(self._run, self._pool, self._clock, Feed(after, types, wait))
