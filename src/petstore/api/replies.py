"""Replies as bytes: bodies and every header that a response under /v1 carries.

One builder for each; what they say is decided elsewhere.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from petstore.errors import MethodNotAllowed, PetstoreError, error_body
from petstore.pets import Pet
from petstore.quota import Decision

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


class Reply(msgspec.Struct):
    """A status, a body (None: the response has none at all) and the headers of this answer alone."""

    status: int
    body: bytes | None
    headers: list[Header] = msgspec.field(default_factory=list)


def pet_body(pet: Pet) -> bytes:
    """A Pet."""
    return _encode(pet)


def pets_body(pets: list[Pet]) -> bytes:
    """Pets: a bare array."""
    return _encode(pets)


def error_reply(error: PetstoreError, *, credential_sent: bool = False) -> Reply:
    """An error as the client gets it, with the headers that its kind asks for."""
    headers: list[Header] = []
    if error.status == 401:
        headers.append(_CHALLENGE_INVALID if credential_sent else _CHALLENGE)
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", error.allow.encode("ascii")))
    if error.retry_after_seconds is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after_seconds))
    return Reply(error.status, error_body(error), headers)


@lru_cache(maxsize=1_024)
def _account_policy(per_minute: int, per_day: int) -> Header:
    """RateLimit-Policy of an account: each window's quota and length in seconds."""
    return (b"ratelimit-policy", b'"minute";q=%d;w=60, "day";q=%d;w=86400' % (per_minute, per_day))


def limit_headers(decision: Decision) -> list[Header]:
    """Both dialects: `X-RateLimit-*` for the binding window, the IETF pair for every window.

    The pair: draft-ietf-httpapi-ratelimit-headers, `t` in seconds from now.
    """
    binding, windows = decision.binding, decision.windows
    now = decision.now_ms // 1_000  # rounded down, so that what is left until a whole second is rounded up
    if len(windows) == 2:
        minute, day = windows
        policy = _account_policy(minute.limit, day.limit)
        left = b'"minute";r=%d;t=%d, "day";r=%d;t=%d' % (
            minute.remaining,
            minute.reset_at - now,
            day.remaining,
            day.reset_at - now,
        )
    else:
        policy = (b"ratelimit-policy", b'"address";q=%d;w=60' % binding.limit)
        left = b'"address";r=%d;t=%d' % (binding.remaining, binding.reset_at - now)
    return [
        (b"x-ratelimit-limit", b"%d" % binding.limit),
        (b"x-ratelimit-remaining", b"%d" % binding.remaining),
        (b"x-ratelimit-reset", b"%d" % binding.reset_at),
        policy,
        (b"ratelimit", left),
    ]


def complete(reply: Reply, decision: Decision, request_id: bytes) -> list[Header]:
    """All headers of a response under /v1."""
    headers = limit_headers(decision)
    if reply.body is None:
        headers += (*reply.headers, (b"x-request-id", request_id), *_ALWAYS)
    else:
        length = (b"content-length", b"%d" % len(reply.body))
        headers += (*reply.headers, (b"x-request-id", request_id), *_WITH_BODY, length)
    return headers
