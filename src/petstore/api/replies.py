"""Replies as bytes: bodies and every header that a response under /v1 carries.

One builder for each; what they say is decided elsewhere.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from petstore.errors import MethodNotAllowed, PetstoreError, error_body
from petstore.pets import Pet
from petstore.quota import Decision, ceil_seconds

Header = tuple[bytes, bytes]

_encode = msgspec.json.Encoder().encode

_JSON: Header = (b"content-type", b"application/json")
# Answers belong to a key and hold for a moment: nothing between us and the client may keep them.
_ALWAYS: tuple[Header, ...] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
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
def _policy(quotas: tuple[tuple[str, int, int], ...]) -> bytes:
    """RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers): each window's quota and length."""
    return ", ".join(f'"{name}";q={limit};w={seconds}' for name, limit, seconds in quotas).encode("ascii")


def limit_headers(decision: Decision) -> list[Header]:
    """Both dialects: `X-RateLimit-*` for the binding window, the IETF pair for every window."""
    binding = decision.binding
    now_ms = decision.now_ms
    rest = ", ".join(
        [
            f'"{window.name}";r={window.remaining};t={ceil_seconds(window.reset_at * 1_000 - now_ms)}'
            for window in decision.windows
        ]
    )
    quotas = tuple([(window.name, window.limit, window.seconds) for window in decision.windows])
    return [
        (b"x-ratelimit-limit", b"%d" % binding.limit),
        (b"x-ratelimit-remaining", b"%d" % binding.remaining),
        (b"x-ratelimit-reset", b"%d" % binding.reset_at),
        (b"ratelimit-policy", _policy(quotas)),
        (b"ratelimit", rest.encode("ascii")),
    ]


def complete(reply: Reply, decision: Decision, request_id: bytes) -> list[Header]:
    """All headers of a response under /v1."""
    headers = [*_ALWAYS, (b"x-request-id", request_id), *limit_headers(decision), *reply.headers]
    if reply.body is not None:
        headers.append(_JSON)
        headers.append((b"content-length", b"%d" % len(reply.body)))
    return headers
