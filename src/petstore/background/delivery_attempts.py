"""The attempts of one webhook: signed, sent, and judged.

A success widens the window of attempts that may be under way at once, up to WINDOW_MAX; a failure makes it
one.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from itertools import chain, takewhile

import msgspec
import structlog

from petstore.background.sending import Answer, Sender
from petstore.core.clock import Clock
from petstore.core.deliverers import OwnedWebhook, Receiver
from petstore.core.durations import MINUTE_MS, SECOND_MS
from petstore.core.errors import StoreUnavailable, Unavailable, WebhookNotFound
from petstore.core.events import Event, read_event_id
from petstore.core.secrets_cipher import SecretsCipher
from petstore.core.webhooks import (
    GONE_STATUS,
    SPREAD,
    DeliveryAttempt,
    DisabledReason,
    Repetition,
    next_attempt_ms,
    signature,
    within_reach_ms,
)
from petstore.transactions.deliverers import Deliverers
from petstore.transactions.events import Events

WINDOW_MAX = 8
_log = structlog.get_logger("petstore.webhooks")
# Their Retry-After is obeyed.
_PAUSING_STATUSES = (429, 503)
# An attempt that failed by a fault of this service counts against no webhook; it is repeated after this long.
_UNAVAILABLE_MS = 5 * MINUTE_MS
# The outcome of an attempt, and its repetition.
Outcome = tuple[DeliveryAttempt | None, Repetition | None]


class AttemptSlots:
    """Bounds the attempts that are under way at once: `limit` of all, and `each` of one account."""

    def __init__(self, limit: int, each: int) -> None:
        self._all = asyncio.Semaphore(limit)
        self._of_account: defaultdict[int, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(each))

    @asynccontextmanager
    async def of(self, account_id: int) -> AsyncIterator[None]:
        """A slot for an account's attempt. One with too many waits, and takes none from the others."""
        async with self._of_account[account_id], self._all:
            yield


async def send_signed(
    sender: Sender, cipher: SecretsCipher, clock: Clock, receiver: Receiver | OwnedWebhook, event: Event
) -> tuple[int, Answer]:
    """One attempt of an event: its Unix time in ms, and its outcome."""
    at_ms, body = clock.now_ms(), msgspec.json.encode(event)
    try:
        headers = signature(cipher.decrypt(receiver.secrets), event.id, at_ms, body)
    except Unavailable as error:
        _log.error("webhook not signed", webhook=receiver.id, reason=error.message)
        return at_ms, Answer(None, error.message, is_ours=True)
    return at_ms, await sender.send(receiver.url, body, headers)


def attempt_of(event: Event, at_ms: int, answer: Answer, next_at_ms: int | None = None) -> DeliveryAttempt:
    """An attempt as it is saved."""
    fault = None if answer.is_success else answer.fault or f"It answered {answer.status}."
    return DeliveryAttempt(
        event.id, event.type, at_ms, answer.duration_ms, answer.status, fault, answer.text, next_at_ms
    )


def _began_ms(clock: Clock) -> int:
    """The Unix time at which the stopwatch was 0: it changes when the time of day is set."""
    return clock.now_ms() - round(clock.monotonic() * SECOND_MS)


class Tools(msgspec.Struct, frozen=True):
    """What all deliveries of a process share: `reading` bounds how many read events at once, `tried` hears
    whether an attempt was a success."""

    owner: str
    deliverers: Deliverers
    events: Events
    sender: Sender
    cipher: SecretsCipher
    clock: Clock
    slots: AttemptSlots
    reading: asyncio.Semaphore
    tried: Callable[[bool], None]


class AttemptRunner:
    """Makes the attempts of one webhook, and has its health. `disabled_reason`: an attempt has ended its
    deliveries. `cannot_sign`: its secrets can't be decrypted here."""

    def __init__(self, webhook: OwnedWebhook, tools: Tools) -> None:
        self.webhook = webhook
        self.health = webhook.health
        self.disabled_reason: DisabledReason | None = None
        self.is_over = False  # what still waits for its slot is not sent
        self.cannot_sign = not tools.cipher.can_decrypt(webhook.secrets)
        if self.cannot_sign:  # all may be, and are not tried at one moment: nobody else would have a slot
            pause_ms = random.uniform(0, _UNAVAILABLE_MS)
            self.health = self.health.paused(tools.clock.now_ms(), round(pause_ms))
        self._tools = tools
        self._window = 1
        self._began_ms = _began_ms(tools.clock)

    def configure(self, webhook: OwnedWebhook) -> None:
        """Go by another URL or other secrets."""
        if webhook.secrets != self.webhook.secrets:
            self.cannot_sign = not self._tools.cipher.can_decrypt(webhook.secrets)
        self.webhook = webhook

    @property
    def window(self) -> int:
        """How many attempts may be under way at once."""
        return 1 if self.health.is_down else self._window

    @property
    def paused_until_ms(self) -> int:
        """The Unix time until which the webhook is left alone."""
        return within_reach_ms(self.health.paused_until_ms, self._tools.clock.now_ms())

    def due_ms(self, repetition: Repetition) -> int:
        """When a repetition may begin: what somebody asked for waits for no pause, if it can be signed."""
        at_ms = within_reach_ms(repetition.at_ms, self._tools.clock.now_ms())
        return max(at_ms, self.paused_until_ms) if repetition.tries or self.cannot_sign else at_ms

    def soonest_ms(self, scheduled: Sequence[Repetition]) -> int:
        """When the first of these may begin, one or more that are sorted by their time. There may be very
        many, and each poll of the journal asks: only for what waits for no pause are they gone through."""
        # The last one may be of a clock that was set back since.
        soonest = min(self.due_ms(scheduled[0]), self.due_ms(scheduled[-1]))
        other = next((each for each in scheduled if not each.tries or each.at_ms >= soonest), scheduled[0])
        return min(soonest, self.due_ms(other))

    def index_of_startable(self, scheduled: Sequence[Repetition]) -> int | None:
        """The index of a repetition that may begin, among those sorted by their time."""
        if self.disabled_reason is not None:
            return None
        now_ms = self._tools.clock.now_ms()
        come = takewhile(lambda each: each[1].at_ms <= now_ms, enumerate(scheduled))
        # The last one may be of a clock that was set back since.
        candidates = chain(come, enumerate(scheduled[-1:], len(scheduled) - 1))
        return next((index for index, each in candidates if self.due_ms(each) <= now_ms), None)

    async def repeat(self, repetition: Repetition) -> Outcome:
        """Send an event again; nothing where it is not kept any more."""
        try:
            event = await self._tools.deliverers.event(self.webhook.id, repetition)
        except StoreUnavailable:
            return None, repetition
        except WebhookNotFound:
            event = None
        return (None, None) if event is None else await self.send(event, repetition.tries)

    async def send(self, event: Event, tries: int = 0) -> Outcome:
        """Send an event that was tried `tries` times before."""
        tools = self._tools
        at: int | None
        async with tools.slots.of(self.webhook.account_id):
            if self.is_over or self.disabled_reason is not None:
                raise asyncio.CancelledError  # so that nothing of it is saved
            at_ms, answer = await send_signed(tools.sender, tools.cipher, tools.clock, self.webhook, event)
            if answer.is_ours:
                self.health = self.health.paused(at_ms, _UNAVAILABLE_MS)
                at = self.health.paused_until_ms
            else:
                tries += 1
                at = self._judge(answer, tries)
        named, found = read_event_id(event.id), attempt_of(event, at_ms, answer, at)
        return found, None if at is None or named is None else Repetition(at, *named, tries)

    def _judge(self, answer: Answer, tries: int) -> int | None:
        """When to try again, a Unix time; None after a success, and after the last repetition."""
        self._tools.tried(answer.is_success)
        if answer.is_success:
            self.health, self._window = self.health.after_success(), min(self._window + 1, WINDOW_MAX)
            return None
        now_ms, asked = self._tools.clock.now_ms(), answer.status in _PAUSING_STATUSES
        set_by_ms = _began_ms(self._tools.clock) - self._began_ms
        if abs(set_by_ms) > MINUTE_MS:  # else two readings of one moment, or a clock that is slow
            self._began_ms += set_by_ms
            self.health = self.health.moved(set_by_ms)
        pause_ms = (answer.retry_after_seconds or 0) * SECOND_MS if asked else 0
        self.health, self._window = self.health.after_failure(now_ms, pause_ms), 1
        if answer.status == GONE_STATUS:
            self.disabled_reason = DisabledReason.GONE
        elif self.health.is_given_up(now_ms):
            self.disabled_reason = self.disabled_reason or DisabledReason.FAILING
        at = next_attempt_ms(tries, now_ms, random.uniform(-SPREAD, SPREAD))
        return None if at is None else max(at, self.health.paused_until_ms)
