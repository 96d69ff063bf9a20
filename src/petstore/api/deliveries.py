"""The operations on the deliveries of webhooks: their outcomes, and sending an event out of turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import lru_cache

import msgspec

from petstore.api.pipeline.paging import PageLinks, bind, read_cursor, read_given, read_limit
from petstore.api.pipeline.request import Request, parameters_of
from petstore.api.pipeline.response import Response, make_representation, make_response
from petstore.api.waits import Waits
from petstore.api.webhooks import webhook_id_of
from petstore.core.clock import Clock
from petstore.core.errors import StoreUnavailable
from petstore.core.keys import Caller
from petstore.core.preconditions import encode, tag_of
from petstore.core.values import INT64_MAX
from petstore.core.webhooks import attempt_members
from petstore.transactions.deliveries import Deliveries

DELIVERY_PARAMETERS = ("limit", "cursor")
# After this time a test is answered without its outcome.
TEST_SECONDS = 20.0
_POLL_SECONDS = 0.2


class DeliveryOperations(msgspec.Struct, kw_only=True):
    """One handler for each operationId. Another account's webhook is not found. `admit_again` is the
    gate's."""

    deliveries: Deliveries
    waits: Waits
    admit_again: Callable[[Request], Awaitable[None]]
    clock: Clock
    reference_base: str

    async def test_webhook(self, request: Request, caller: Caller) -> Response:
        """POST /webhooks/{webhookId}/test: what came back, or 202 after TEST_SECONDS and at a stop."""
        webhook_id = webhook_id_of(request)
        event_id = await self.deliveries.test(webhook_id, caller.actor, caller.account_id)
        began, found = self.clock.monotonic(), None
        while found is None and not self.waits.has_ended and request.waited < TEST_SECONDS:
            await asyncio.sleep(_POLL_SECONDS)
            with suppress(StoreUnavailable):  # an error would say that nothing was stored
                found = await self.deliveries.first_attempt(webhook_id, event_id)
            request.waited = self.clock.monotonic() - began
        if request.waited:  # the answer is of this moment, and only for a key that is good now
            await self.admit_again(request)
        if found is None:
            return _queued(event_id)
        return make_response(200, encode(attempt_members(found)))

    async def list_deliveries(self, request: Request, caller: Caller) -> Response:
        """GET /webhooks/{webhookId}/deliveries: a page of attempts, newest first."""
        given, _ = read_given(parameters_of(request.query), DELIVERY_PARAMETERS, "")
        limit, webhook_id = read_limit(given), webhook_id_of(request)
        links = _links_of(self.reference_base, webhook_id, limit)
        cursor = given.get("cursor")
        before_id = 0 if cursor is None else read_cursor(cursor, links.bound)
        page = await self.deliveries.attempts(webhook_id, limit, before_id or INT64_MAX, caller.account_id)
        body, link = encode([attempt_members(each) for each in page.attempts]), links.after(page.next_start)
        return make_representation(body, tag_of(body + link), (b"link", link))

    async def redeliver(self, request: Request, caller: Caller) -> Response:
        """POST /webhooks/{webhookId}/deliveries/{eventId}: 202, the event is sent once more."""
        event_id = request.path.rpartition(b"/")[2].decode("latin-1")
        await self.deliveries.redeliver(webhook_id_of(request), event_id, caller.actor, caller.account_id)
        return _queued(event_id)


def _queued(event_id: str) -> Response:
    return make_response(202, encode({"eventId": event_id}))


@lru_cache(maxsize=256)
def _links_of(base: str, webhook_id: int, limit: int) -> PageLinks:
    return PageLinks(
        f"{base}/webhooks/{webhook_id}/deliveries", limit, None, None, "", bind(f"deliveries {webhook_id}")
    )
