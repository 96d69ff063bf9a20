"""The operation rehearseEvent, in staging alone: an event that has not happened, sent to own webhooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from petstore.api.pipeline.body import check_body_headers, read_body
from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Response, make_response
from petstore.core.clock import Clock
from petstore.core.deliverers import Receiver
from petstore.core.errors import NotFound
from petstore.core.events import Event
from petstore.core.keys import Caller
from petstore.core.preconditions import encode
from petstore.core.rehearsal import EVENT_REQUEST, entry_of, event_of_type
from petstore.core.webhooks import DeliveryAttempt, attempt_members
from petstore.transactions.deliveries import Deliveries

# Sends an event to all of them at once, and returns the outcomes in their order.
Send = Callable[[Sequence[Receiver], Event], Awaitable[Sequence[DeliveryAttempt]]]


class RehearsalOperations(msgspec.Struct, kw_only=True):
    """`send`: None where nothing is rehearsed. `admit_again` is the gate's."""

    deliveries: Deliveries
    send: Send | None
    admit_again: Callable[[Request], Awaitable[None]]
    clock: Clock
    body_timeout_seconds: float

    async def rehearse_event(self, request: Request, caller: Caller) -> Response:
        """POST /rehearsal/events: what each webhook has answered. Nothing is stored."""
        if self.send is None:
            raise NotFound("POST /v1/rehearsal/events works in staging alone.")
        check_body_headers(request)
        wanted = EVENT_REQUEST.read(await read_body(request, self.body_timeout_seconds))
        receivers = await self.deliveries.receivers(caller.account_id, entry_of(wanted.type))
        began = self.clock.monotonic()
        attempts = await self.send(receivers, event_of_type(wanted.type, self.clock.now_ms()))
        request.waited = self.clock.monotonic() - began
        await self.admit_again(request)  # the answer is of this moment, and only for a key that is good now
        found = [
            {"webhookId": receiver.id, "delivery": attempt_members(each)}
            for receiver, each in zip(receivers, attempts, strict=True)
        ]
        return make_response(200, encode(found))
