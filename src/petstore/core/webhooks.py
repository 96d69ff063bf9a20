"""Webhooks: addresses of clients that get events, what they are signed with, and when an attempt is repeated.

Signatures are those of Standard Webhooks 1.0.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from petstore.core.durations import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from petstore.core.errors import Conflict
from petstore.core.events import NOW, PATTERNS, TESTED, bookmark_fault, read_types
from petstore.core.fields import Text, TextArray
from petstore.core.members import Schema
from petstore.core.moments import iso_moment, iso_moment_or_none
from petstore.core.targets import URL_MAX
from petstore.core.values import NAME_MAX_CHARACTERS, characters_fault

ALL = "*"
TYPES_MAX = 50
TESTS_A_MINUTE = 10
ANSWER_KEPT_CHARACTERS = 1_024
SUCCESSES_KEPT = 100

_SECRET_PREFIX = "whsec_"
_SECRET_BYTES = 32
# How long a replaced secret still signs, and how many secrets sign at most.
FORMER_MS = DAY_MS
_SECRETS_MAX = 5

# The pauses before the repetitions of an attempt that failed; each is up to a fifth longer or shorter.
REPETITIONS_MS = (
    5 * SECOND_MS,
    30 * SECOND_MS,
    5 * MINUTE_MS,
    30 * MINUTE_MS,
    *(hours * HOUR_MS for hours in (2, 5, 10, 14, 20, 24)),
)
SPREAD = 0.2
RETRY_AFTER_MAX_MS = DAY_MS
# No repetition and no pause is further ahead.
FURTHEST_MS = 2 * DAY_MS
# Failures in a row after which there is one attempt at a time.
DOWN_AFTER = 20
GIVEN_UP_AFTER_MS = 5 * DAY_MS
GONE_STATUS = 410


class DisabledReason(StrEnum):
    """Why a webhook gets nothing: its owner or the operator disabled it, all attempts failed for five days,
    or it answered 410."""

    OWNER = "owner"
    OPERATOR = "operator"
    FAILING = "failing"
    GONE = "gone"


def _types_fault(types: Sequence[str]) -> str | None:
    if not 1 <= len(types) <= TYPES_MAX:
        return f"expected 1 to {TYPES_MAX} types"
    if not all(each == ALL or each in PATTERNS for each in types):
        return f"expected {', '.join((ALL, *PATTERNS))}"
    return None


def _description_fault(text: str) -> str | None:
    if len(text) > NAME_MAX_CHARACTERS:
        return f"expected at most {NAME_MAX_CHARACTERS} characters, got {len(text)}"
    return characters_fault(text)


def _url_fault(text: str) -> str | None:
    fits = 1 <= len(text) <= URL_MAX
    return None if fits else f"expected 1 to {URL_MAX} characters, got {len(text)}"


Url = Annotated[str, Text(_url_fault)]
Types = Annotated[tuple[str, ...], TextArray(_types_fault)]
Description = Annotated[str, Text(_description_fault)]
After = Annotated[str, Text(lambda text: None if text == NOW else bookmark_fault(text))]


class NewWebhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A webhook to make."""

    url: Url
    types: Types = (ALL,)
    description: Description = ""


class WebhookChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What changes of a webhook: at least one member. `after`: where it goes on, a bookmark or NOW."""

    url: Url | msgspec.UnsetType = msgspec.UNSET
    types: Types | msgspec.UnsetType = msgspec.UNSET
    description: Description | msgspec.UnsetType = msgspec.UNSET
    enabled: bool | msgspec.UnsetType = msgspec.UNSET
    after: After | msgspec.UnsetType = msgspec.UNSET


_ASSIGNED = ("id", "secret", "keyId", "createdAt", "disabledReason", "failingSince")
NEW_WEBHOOK = Schema(NewWebhook, "a new webhook", assigned=_ASSIGNED)
WEBHOOK_CHANGE = Schema(WebhookChange, "a change of a webhook", assigned=_ASSIGNED)


class Webhook(msgspec.Struct, frozen=True):
    """A webhook. `key_id`: the key that made it; times are Unix times in ms."""

    id: int
    account_id: int
    key_id: int
    url: str
    types: tuple[str, ...]
    description: str
    created_at_ms: int
    disabled: DisabledReason | None = None
    failing_since_ms: int | None = None  # the first failure since the last success

    @property
    def state(self) -> str:
        """`disabled`, `failing` since its last success, or `active`."""
        if self.disabled is not None:
            return "disabled"
        return "active" if self.failing_since_ms is None else "failing"


def members_of(webhook: Webhook) -> dict[str, Any]:
    """A webhook as its owner sees it: the interface's Webhook."""
    return {
        "id": webhook.id,
        "url": webhook.url,
        "types": webhook.types,
        "description": webhook.description,
        "enabled": webhook.disabled is None,
        "disabledReason": webhook.disabled,
        "failingSince": iso_moment_or_none(webhook.failing_since_ms),
        "keyId": webhook.key_id,
        "createdAt": iso_moment(webhook.created_at_ms),
    }


def entry_types_of(types: Sequence[str]) -> frozenset[str]:
    """The types of the entries that a webhook gets by itself."""
    return read_types(() if ALL in types else types) - {TESTED}


class Secret(msgspec.Struct, frozen=True, array_like=True):
    """`ends_ms` is when a replaced secret stops signing; None for the current one."""

    text: str
    ends_ms: int | None = None


def mint() -> Secret:
    """A new secret: 256 random bits."""
    return Secret(_SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode())


def renewed(kept: Sequence[Secret], now_ms: int) -> list[Secret]:
    """A new secret, then the ones before it. Raises Conflict for too many."""
    former = [each if each.ends_ms else Secret(each.text, now_ms + FORMER_MS) for each in kept]
    former = [each for each in former if (each.ends_ms or 0) > now_ms]
    if len(former) >= _SECRETS_MAX:
        raise Conflict(
            f"This webhook has {len(former)} secrets that sign. Each ends 24 hours after it was replaced;"
            " rotate again then."
        )
    return [mint(), *former]


def signature(kept: Sequence[Secret], event_id: str, now_ms: int, body: bytes) -> dict[str, str]:
    """The headers that sign a body, by each secret that has not ended."""
    seconds = now_ms // SECOND_MS
    signed = f"{event_id}.{seconds}.".encode() + body
    keys = [
        base64.b64decode(each.text.removeprefix(_SECRET_PREFIX))
        for each in kept
        if each.ends_ms is None or each.ends_ms > now_ms
    ]
    marks = [base64.b64encode(hmac.digest(key, signed, sha256)).decode() for key in keys]
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(f"v1,{mark}" for mark in marks),
    }


class WebhookHealth(msgspec.Struct, frozen=True):
    """How a webhook does: `failures` in a row, the first at `failing_since_ms`; it asked to be left alone
    until `paused_until_ms`."""

    failures: int = 0
    failing_since_ms: int | None = None
    paused_until_ms: int = 0

    @property
    def is_down(self) -> bool:
        """Whether it gets one attempt at a time."""
        return self.failures >= DOWN_AFTER

    def after_failure(self, now_ms: int, retry_after_ms: int) -> WebhookHealth:
        since_ms = now_ms if self.failing_since_ms is None else min(self.failing_since_ms, now_ms)
        return WebhookHealth(self.failures + 1, since_ms, self._paused_ms(now_ms, retry_after_ms))

    def moved(self, by_ms: int) -> WebhookHealth:
        """The health after the clock was set forward by `by_ms`: it has failed for as long as before."""
        since_ms = None if self.failing_since_ms is None else self.failing_since_ms + by_ms
        return replace(self, failing_since_ms=since_ms)

    def after_success(self) -> WebhookHealth:
        return WebhookHealth(paused_until_ms=self.paused_until_ms)

    def paused(self, now_ms: int, pause_ms: int) -> WebhookHealth:
        """Left alone for `pause_ms`, which counts as no failure."""
        return replace(self, paused_until_ms=self._paused_ms(now_ms, pause_ms))

    def _paused_ms(self, now_ms: int, pause_ms: int) -> int:
        # Another attempt may have asked for a longer pause meanwhile. A clock may have been set back.
        return min(max(self.paused_until_ms, now_ms + pause_ms), now_ms + RETRY_AFTER_MAX_MS)

    def is_given_up(self, now_ms: int) -> bool:
        """Whether a failure at this moment is the last one."""
        return self.failing_since_ms is not None and now_ms - self.failing_since_ms >= GIVEN_UP_AFTER_MS


def next_attempt_ms(tries: int, now_ms: int, spread: float) -> int | None:
    """When to repeat what has failed `tries` times; `spread` is from -SPREAD to SPREAD. None: never."""
    if tries > len(REPETITIONS_MS):
        return None
    return now_ms + int(REPETITIONS_MS[tries - 1] * (1 + spread))


def within_reach_ms(at_ms: int, now_ms: int) -> int:
    """The time of a repetition or of the end of a pause; 0 for one beyond FURTHEST_MS: the clock was set back
    since."""
    return at_ms if at_ms <= now_ms + FURTHEST_MS else 0


class Repetition(msgspec.Struct, frozen=True, order=True):
    """An event that is sent again at a Unix time; its id is of `data_set` and `entry_id`."""

    at_ms: int
    data_set: str
    entry_id: int
    tries: int = 0


class DeliveryAttempt(msgspec.Struct, frozen=True):
    """The outcome of one attempt. `status` is None when no answer came; `next_at_ms`: the repetition, if
    there is one."""

    event_id: str
    type: str
    at_ms: int
    duration_ms: int
    status: int | None
    fault: str | None
    answer: str
    next_at_ms: int | None = None

    @property
    def is_success(self) -> bool:
        return self.fault is None


def attempt_members(found: DeliveryAttempt) -> dict[str, Any]:
    """An attempt as the owner of its webhook sees it: the interface's Delivery."""
    return {
        "eventId": found.event_id,
        "type": found.type,
        "at": iso_moment(found.at_ms),
        "durationMs": found.duration_ms,
        "status": found.status,
        "fault": found.fault,
        "answer": found.answer,
        "delivered": found.is_success,
        "nextAt": iso_moment_or_none(found.next_at_ms),
    }


class AttemptPage(msgspec.Struct, frozen=True):
    """Attempts, newest first. `next_start`: where the next page begins; None at the end."""

    attempts: list[DeliveryAttempt]
    next_start: int | None
