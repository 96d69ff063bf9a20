"""The feed of events as calls: one page, and how far a follower has come. Does no I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from math import inf

from petstore_client import models
from petstore_client.answers import Answer, bookmark_of, reads, retry_after_seconds
from petstore_client.calls import PAGE_SIZE_MAX, Call
from petstore_client.documents import read_array
from petstore_client.models import Event, EventPage

NOW = "now"
# Between requests of a follower whose wait ended early, as at a restart of the service.
_LEAST_SECONDS = 1.0


def list_events(
    after: str | None, types: Iterable[str], page_size: int, wait: int, follows_at: float | None = None
) -> Call[EventPage]:
    """GET /events."""
    kinds = (types,) if isinstance(types, str) else types
    query = [("limit", str(page_size)), *(("type", kind) for kind in kinds)]
    query += [("after", after)] if after is not None else []
    query += [("wait", str(wait))] if wait else []
    return Call("listEvents", _page, query=tuple(query), wait_seconds=max(0, wait), follows_at=follows_at)


_read_events = reads(read_array(models.read_event))


def _page(answer: Answer) -> EventPage:
    return EventPage(
        _read_events(answer),
        bookmark_of(answer),
        answer.headers.get("events-behind") == "true",
        retry_after_seconds(answer, inf),
    )


class Feed:
    """The place of a follower, and its next call. Times are monotonic, in seconds.

    `after` is the bookmark after the last page whose events were all taken.
    """

    def __init__(self, after: str | None, types: Iterable[str], wait: int) -> None:
        self.after = after
        self._types = (types,) if isinstance(types, str) else tuple(types)
        self._wait = wait
        self._events: deque[Event] = deque()
        self._behind_events = after
        self._asked_at = self._asks_at = -inf

    def take(self) -> Event | None:
        """The next event; None when the page has no more."""
        if not self._events:
            return None
        event = self._events.popleft()
        if not self._events:
            self.after = self._behind_events
        return event

    def call(self, now: float) -> Call[EventPage]:
        """The call for the next page.

        The first one of `now` fetches its bookmark, and does not wait: what happens while a lost call is
        repeated would be passed over. The first one from the beginning has one event, so that there is a
        bookmark after it.
        """
        self._asked_at = now
        wait = 0 if self.after == NOW else self._wait
        size = 1 if self.after is None else PAGE_SIZE_MAX
        return list_events(self.after, self._types, size, wait, max(now, self._asks_at))

    def answered(self, page: EventPage, now: float) -> None:
        """Keep the page."""
        was_now = self.after == NOW
        self._events.extend(page)
        self._behind_events = page.after
        if page:
            return
        self.after = page.after
        if page.retry_after_seconds is not None:
            self._asks_at = now + page.retry_after_seconds
        elif not page.is_behind and not was_now:
            self._asks_at = self._asked_at + _LEAST_SECONDS
