"""Responses as bytes: bodies, and every header of a response under /v1."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from email.utils import formatdate
from functools import lru_cache
from typing import NamedTuple

import msgspec

from petstore.core.errors import BY_CODE, MethodNotAllowed, PetstoreError, UnsupportedMediaType
from petstore.core.limits.decision import AddressDecision, Decision
from petstore.core.limits.plans import WINDOWS
from petstore.core.preconditions import find_weakly, other_coding, read_tags, tag_of

Header = tuple[bytes, bytes]

_JSON: Header = (b"content-type", b"application/json")
_NOSNIFF: Header = (b"x-content-type-options", b"nosniff")
# Responses depend on the key and change at any time: proxies must not keep them. The client itself may keep
# the 200 of a GET, if it asks each time by its tag.
_ALWAYS: tuple[Header, ...] = ((b"cache-control", b"no-store"), _NOSNIFF)
_REVALIDATED: tuple[Header, ...] = ((b"cache-control", b"private, no-cache"), _NOSNIFF, _JSON)
_VARY: Header = (b"vary", b"Accept-Encoding")
_GZIPPED: Header = (b"content-encoding", b"gzip")
# 32 microseconds for a page of 100 animals, as level 1, to 20 % of its bytes; level 6 takes 77, to 17 %.
_GZIP_LEVEL = 2
_CHALLENGE: Header = (b"www-authenticate", b'Bearer realm="petstore"')
_CHALLENGE_INVALID: Header = (b"www-authenticate", b'Bearer realm="petstore", error="invalid_token"')
_KINDS = tuple((kind.name, kind.seconds) for kind in WINDOWS)  # accounts' windows


class Response(msgspec.Struct, frozen=True, gc=False):
    """A status, a body (None: no body at all) and the headers that don't depend on the request, also as
    `lines` that are ready to be sent: one object may answer any number of requests. A client that has the
    `tag` gets 304 instead; empty where there is no such answer.
    """

    status: int
    body: bytes | None
    headers: tuple[Header, ...]
    lines: bytes
    tag: bytes = b""


def render(headers: Iterable[Header]) -> bytes:
    """Header lines as they are sent."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


class _Ending(NamedTuple):
    """The last headers of many responses, rendered once."""

    headers: tuple[Header, ...]
    lines: bytes


def _ending(*headers: Header) -> _Ending:
    return _Ending(headers, render(headers))


_NOTHING = _ending()
_WITHOUT_BODY = _ending(*_ALWAYS)
_WITH_BODY = _ending(*_ALWAYS, _JSON)
_OF_REPRESENTATION = _ending(*_REVALIDATED)
_OF_PAGE = _ending(_VARY, *_REVALIDATED)


def _respond(
    status: int, body: bytes | None, headers: tuple[Header, ...], ending: _Ending = _NOTHING, tag: bytes = b""
) -> Response:
    return Response(status, body, headers + ending.headers, render(headers) + ending.lines, tag)


def make_response(status: int, body: bytes | None, *headers: Header) -> Response:
    """A response with the given headers, every response's headers and its body's.

    Content-Length is the HTTP server's to add.
    """
    return _respond(status, body, headers, _WITHOUT_BODY if body is None else _WITH_BODY)


def make_created(body: bytes, tag: bytes, location: str, *, replayed: bool) -> Response:
    """The 201 of a creation, or of an earlier one with the same Idempotency-Key."""
    headers = [(b"etag", tag), (b"location", location.encode("ascii"))]
    if replayed:
        headers.append((b"idempotency-replayed", b"true"))
    return make_response(201, body, *headers)


def make_representation(body: bytes, tag: bytes = b"", *headers: Header) -> Response:
    """The 200 of a GET, which a client may keep and ask for again by its tag (RFC 9111, 5.2.2.4): the body's
    tag, unless there is another."""
    tag = tag or tag_of(body)
    return _respond(200, body, ((b"etag", tag), *headers), _OF_REPRESENTATION, tag)


def make_page(body: bytes, tag: bytes = b"", *headers: Header) -> Response:
    """The representation of an operation whose pages are cached: it may come in gzip too."""
    tag = tag or tag_of(body)
    return _respond(200, body, ((b"etag", tag), *headers), _OF_PAGE, tag)


def compress(page: Response) -> Response:
    """A page in gzip, with the tag of this coding. Any JSON of a kilobyte gets shorter."""
    tag, body = other_coding(page.tag), gzip.compress(page.body or b"", _GZIP_LEVEL, mtime=0)
    headers = [(name, tag if name == b"etag" else value) for name, value in page.headers]
    return _respond(200, body, (*headers, _GZIPPED), tag=tag)


def unless_known(response: Response, if_none_match: bytes | None) -> Response:
    """304 in place of a representation that the client has in either coding (RFC 9110, 13.1.2): with the tag
    that the client has, and the same headers without the body's. A malformed list is ignored: the whole
    answer loses nothing.
    """
    if if_none_match is None:
        return response
    tags = read_tags(if_none_match)
    known = None if tags is None else find_weakly(tags, response.tag)
    if known is None:
        return response
    kept = [header for header in response.headers if header not in (_JSON, _GZIPPED)]
    return _respond(304, None, tuple((name, known if name == b"etag" else value) for name, value in kept))


def help_links(page: str) -> dict[str, Header]:
    """The Link of each code to its entry on the page of errors (RFC 8288, relation `help` of HTML)."""
    return {code: (b"link", f'<{page}#{code}>; rel="help"'.encode("ascii")) for code in BY_CODE}


_made_before = lru_cache(maxsize=256)(make_response)  # clients repeat their errors


def error_response(
    error: PetstoreError, help_link: Header, *further: Header, credential_sent: bool = False
) -> Response:
    """An error with the headers that its kind needs."""
    headers = [help_link, *further]
    if error.status == 401:
        headers.append(_CHALLENGE_INVALID if credential_sent else _CHALLENGE)
    if isinstance(error, MethodNotAllowed):
        headers.append((b"allow", error.allow.encode("ascii")))
    if isinstance(error, UnsupportedMediaType) and error.accept_patch:
        headers.append((b"accept-patch", error.accept_patch.encode("ascii")))
    if error.retry_after_seconds is not None:
        headers.append((b"retry-after", b"%d" % error.retry_after_seconds))
    return _made_before(error.status, error.body, *headers)


def limit_lines(decision: Decision | AddressDecision, request_id: bytes) -> bytes:
    """The limits as `X-RateLimit-*` and `RateLimit` headers, the time of their reading, and the request id.

    `X-RateLimit-*` are those of the window that stops the client first, the IETF pair has every window
    (draft-ietf-httpapi-ratelimit-headers, `t` in seconds from now).
    """
    now = decision.now_ms // 1_000  # rounded down, so that the seconds left are rounded up
    if not isinstance(decision, Decision):
        window = decision.binding
        left, kinds = window.remaining, ((window.name, window.seconds),)
        return _of_a_second((window.limit,), (window.reset_at,), 0, now, kinds) % (left, left, request_id)
    at, remaining = decision.binding_index, decision.remaining
    return _of_a_second(decision.limits, decision.reset_at, at, now) % (remaining[at], *remaining, request_id)


@lru_cache(maxsize=16)
def date_header(seconds: int) -> Header:
    """Date at a Unix time (RFC 9110, section 6.6.1); made once for each second."""
    return (b"date", formatdate(seconds, usegmt=True).encode("ascii"))


def lines_with(response: Response, further: Iterable[Header]) -> bytes:
    """The header lines of both. A name of both is one line, with the further value first (RFC 9110, 5.3)."""
    left = dict(further)
    if left.keys().isdisjoint(dict(response.headers)):
        return response.lines + render(left.items())
    own = [
        (name, b"%b, %b" % (left.pop(name), value) if name in left else value)
        for name, value in response.headers
    ]
    return render([*own, *left.items()])


@lru_cache(maxsize=1_024)
def _of_a_second(
    limits: tuple[int, ...],
    reset_at: tuple[int, ...],
    binding_index: int,
    now: int,
    kinds: tuple[tuple[str, int], ...] = _KINDS,
) -> bytes:
    """What stays the same within a second: the limit, its reset, the policy, and Date. A format with places
    for what remains of the binding window and of each, and for the request id.

    The policy has each window's quota and seconds.
    """
    policy = [f'"{name}";q={limit};w={seconds}' for (name, seconds), limit in zip(kinds, limits, strict=True)]
    left = [f'"{name}";r=%d;t={reset - now}' for (name, _), reset in zip(kinds, reset_at, strict=True)]
    return render(
        [
            (b"x-ratelimit-limit", b"%d" % limits[binding_index]),
            (b"x-ratelimit-remaining", b"%d"),
            (b"x-ratelimit-reset", b"%d" % reset_at[binding_index]),
            (b"ratelimit-policy", ", ".join(policy).encode("ascii")),
            (b"ratelimit", ", ".join(left).encode("ascii")),
            date_header(now),
            (b"x-request-id", b"%b"),
        ]
    )
