"""Replies as bytes: bodies and every header that a response under /v1 carries.

One builder for each; what they say is decided elsewhere.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from petstore.core.errors import MethodNotAllowed, PetstoreError, error_body
from petstore.core.limits.decision import AnyDecision, Decision
from petstore.core.pets import Pet

Header = tuple[bytes, bytes]

_encode = msgspec.json.Encoder().encode

_JSON: Header = (b"content-type", b"application/json")
# Answers belong to a key and hold for a moment: nothing between us and the client may keep them.
_ALWAYS: tuple[Header, ...] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
_WITH_BODY: tuple[Header, ...] = (*_ALWAYS, _JSON)
_CHALLENGE: Header = (b"www-authenticate", b'Bearer realm="petstore"')
_CHALLENGE_INVALID: Header = (b"www-authenticate", b'Bearer realm="petstore", error="invalid_token"')


class Response(msgspec.Struct, frozen=True, gc=False):
    """A status, a body (None: the response has none at all) and every header that is not the request's own.

    The same object may answer any number of requests.
    """

    status: int
    body: bytes | None
    headers: tuple[Header, ...]


def make_response(status: int, body: bytes | None, *headers: Header) -> Response:
    """A reply with the headers of this answer alone, and those that follow from its body."""
    if body is None:
        return Response(status, None, (*headers, *_ALWAYS))
    return Response(status, body, (*headers, *_WITH_BODY, (b"content-length", b"%d" % len(body))))


def pet_body(pet: Pet) -> bytes:
    """A Pet."""
    return _encode(pet)


def pets_body(pets: list[Pet]) -> bytes:
    """Pets: a bare array."""
    return _encode(pets)


def error_response(error: PetstoreError, *, credential_sent: bool = False) -> Response:
    """An error as the client gets it, with the headers that its kind asks for."""
    headers: list[Header] = []
    if error.status == 401:
        headers.append(_CHALLENGE_INVALID if credential_sent else _CHALLENGE)
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", error.allow.encode("ascii")))
    if error.retry_after_seconds is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after_seconds))
    return make_response(error.status, error_body(error), *headers)


@lru_cache(maxsize=1_024)
def _account_limits(
    per_minute: int, per_day: int, limit: int, reset_at: int
) -> tuple[Header, Header, Header]:
    """What stands for as long as a window does; the policy has each window's quota and length in seconds."""
    policy = b'"minute";q=%d;w=60, "day";q=%d;w=86400' % (per_minute, per_day)
    return _limits(limit, reset_at, policy)


def _limits(limit: int, reset_at: int, policy: bytes) -> tuple[Header, Header, Header]:
    return (
        (b"x-ratelimit-limit", b"%d" % limit),
        (b"x-ratelimit-reset", b"%d" % reset_at),
        (b"ratelimit-policy", policy),
    )


def complete(reply: Response, decision: AnyDecision, request_id: bytes) -> list[Header]:
    """All headers of a response under /v1.

    The limits in both dialects: `X-RateLimit-*` for the window that binds, the IETF pair for every window
    (draft-ietf-httpapi-ratelimit-headers, `t` in seconds from now).
    """
    now = decision.now_ms // 1_000  # rounded down, so that what is left until a whole second is rounded up
    if isinstance(decision, Decision):
        per_minute, remaining, reset_at = (
            decision.per_minute,
            decision.minute_remaining,
            decision.minute_reset_at,
        )
        per_day, day_remaining, day_reset_at = decision.per_day, decision.day_remaining, decision.day_reset_at
        left = b'"minute";r=%d;t=%d, "day";r=%d;t=%d' % (
            remaining,
            reset_at - now,
            day_remaining,
            day_reset_at - now,
        )
        if decision.minute_binds:
            limit, reset, policy = _account_limits(per_minute, per_day, per_minute, reset_at)
        else:
            limit, reset, policy = _account_limits(per_minute, per_day, per_day, day_reset_at)
            remaining = day_remaining
    else:
        window = decision.binding
        remaining = window.remaining
        left = b'"address";r=%d;t=%d' % (remaining, window.reset_at - now)
        limit, reset, policy = _limits(window.limit, window.reset_at, b'"address";q=%d;w=60' % window.limit)
    return [
        limit,
        (b"x-ratelimit-remaining", b"%d" % remaining),
        reset,
        policy,
        (b"ratelimit", left),
        (b"x-request-id", request_id),
        *reply.headers,
    ]
