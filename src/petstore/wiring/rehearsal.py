"""What staging alone does: the header Petstore-Rehearse, and events that have not happened."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from petstore import __version__
from petstore.api.openapi.document import documented_messages
from petstore.api.operations import Handlers, operations
from petstore.api.pipeline.app import refusing_parameters
from petstore.api.pipeline.gate import Gate
from petstore.api.pipeline.rehearsal import Rehearsal, Rehearse, refuse
from petstore.api.pipeline.routing import Router
from petstore.api.rehearsal import Send
from petstore.api.waits import Waits
from petstore.config import Settings
from petstore.core.clock import Clock
from petstore.core.deliverers import Receiver
from petstore.core.errors import Conflict
from petstore.core.events import Event
from petstore.core.secrets_cipher import SecretsCipher
from petstore.core.webhooks import DeliveryAttempt
from petstore.storage.store import Store
from petstore.wiring.operations import guard_of, pet_handlers

_SENT_AT_ONCE = 100


def build_rehearsal(
    settings: Settings, clock: Clock, store: Store, gate: Gate, waits: Waits, handlers: Handlers
) -> Rehearse:
    """What the header does. Without a stage it is refused as in production: a client that rehearses must not
    write into a real store by mistake."""
    if not settings.is_staging:
        return refuse(settings.other_base_url)
    documented_messages()  # now, not at the first request: all others would wait
    removed = handlers._replace(pets=pet_handlers(settings, clock, store, is_removed=True))
    return Rehearsal(
        gate,
        clock,
        documented_messages,
        Router(map(refusing_parameters, operations(removed))),
        settings.removal_at_ms,
        lambda: waits.has_ended,
    )


def send_of(settings: Settings, clock: Clock) -> Send | None:
    """Sends as the background process does, but once and from this process; the outcome is not stored."""
    if not settings.is_staging:
        return None
    cipher, slots = SecretsCipher(settings.secrets_key), asyncio.Semaphore(_SENT_AT_ONCE)

    async def send(receivers: Sequence[Receiver], event: Event) -> Sequence[DeliveryAttempt]:
        from petstore.background.delivery_attempts import attempt_of, send_signed
        from petstore.background.sending import Sender  # an HTTP client: other workers have none

        if not settings.deliveries:
            raise Conflict("This service sends no webhooks: the operator has switched them off.")

        async def send_one(receiver: Receiver) -> DeliveryAttempt:
            async with slots:
                return attempt_of(event, *await send_signed(sender, cipher, clock, receiver, event))

        guard, proxy = guard_of(settings), settings.webhook_proxy
        async with Sender(guard, proxy=proxy, clock=clock, version=__version__) as sender:
            return await asyncio.gather(*map(send_one, receivers))

    return send
