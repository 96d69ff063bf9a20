"""The operation on events: listEvents, which may wait for the next one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import quote

import msgspec

from petstore.api.pipeline.paging import read_given, read_limit, read_one_of
from petstore.api.pipeline.request import Parameters, Request, parameters_of
from petstore.api.pipeline.response import Header, Response, make_representation
from petstore.api.waits import Waits
from petstore.core.clock import Clock
from petstore.core.events import NOW, WAIT_MAX_SECONDS, EventPage, EventQuery, read_bookmark, read_types
from petstore.core.keys import Caller
from petstore.core.preconditions import encode, tag_of
from petstore.transactions.events import Events

EVENT_PARAMETERS = ("after", "type", "limit", "wait")
_WAITS = {str(seconds): seconds for seconds in range(WAIT_MAX_SECONDS + 1)}
# When an account's other requests wait already, or the service stops.
RETRY_SECONDS = 5


class _Asked(msgspec.Struct, frozen=True):
    """`same` are the parameters of the next request but for its bookmark."""

    query: EventQuery
    from_now: bool
    wait_seconds: int
    same: str


class EventOperations(msgspec.Struct, kw_only=True):
    """One handler for each operationId. `admit_again` is the gate's."""

    events: Events
    waits: Waits
    admit_again: Callable[[Request], Awaitable[None]]
    clock: Clock
    reference_base: str

    async def list_events(self, request: Request, caller: Caller) -> Response:
        """GET /events: the next events in the order of the journal; with `wait` as soon as there is one."""
        asked = read_asked(parameters_of(request.query), caller)
        query, headers = asked.query, list[Header]()
        if asked.from_now:
            page = EventPage([], await self.events.newest(), is_behind=False)
        else:
            page = await self.events.page(query)
        if asked.wait_seconds and not page.events and not page.is_behind:
            if self.waits.can_wait(caller):
                began = self.clock.monotonic()
                gone = request.exchange.wait_for_disconnect()
                try:
                    page = await self.waits.wait(caller, query, page, asked.wait_seconds, gone)
                finally:  # an error too is of this moment, and only for a key that is good now
                    request.waited = self.clock.monotonic() - began
                    async with self.waits.slots:
                        await self.admit_again(request)
            else:
                headers.append((b"retry-after", b"%d" % RETRY_SECONDS))
        if page.is_behind:
            headers.append((b"events-behind", b"true"))
        link = f'<{self.reference_base}/events?{asked.same}&after={page.after}>; rel="next"'.encode("ascii")
        body = encode(page.events)
        return make_representation(body, tag_of(body + link), (b"link", link), *headers)


def read_asked(parameters: Parameters, caller: Caller) -> _Asked:
    """The parameters of GET /events. Raises InvalidParameter."""
    given, listed = read_given(parameters, EVENT_PARAMETERS, "type")
    types = list(dict.fromkeys(",".join(listed).split(","))) if listed else []
    limit = read_limit(given)
    wait_seconds = read_one_of(_WAITS, given, "wait", f"an integer from 0 to {WAIT_MAX_SECONDS}") or 0
    after = given.get("after")
    from_now = after == NOW
    query = EventQuery(
        limit,
        caller.account_id,
        read_types(types),
        None if after is None or from_now else read_bookmark(after),
    )
    same = [f"limit={limit}", *(f"type={quote(kind, safe='*')}" for kind in types)]
    if wait_seconds:
        same.append(f"wait={wait_seconds}")
    return _Asked(query, from_now, wait_seconds, "&".join(same))
