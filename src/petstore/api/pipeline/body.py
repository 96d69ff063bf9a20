"""Bodies of requests: their declared size and type, and their arrival within a deadline."""

from __future__ import annotations

import asyncio
import re
from functools import lru_cache

from petstore.api.pipeline.request import Exchange, Request
from petstore.core.errors import (
    InvalidBody,
    InvalidHeader,
    PayloadTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
)

BODY_MAX_BYTES = 64 * 1024

# RFC 5789, Accept-Patch. Both mean the same here: a member that is null is taken back (RFC 7396).
PATCH_TYPES = "application/json, application/merge-patch+json"

# RFC 9110, 5.6.6. Nothing is tried twice (`++`), so the longest header costs one pass.
_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_PARAMETER = rb"(" + _TOKEN + rb")[ \t]*+=[ \t]*+(" + _TOKEN + rb'|"(?:[^"\\]|\\.)*+")'
_PARAMETERS = rb"(?:[ \t]*+;[ \t]*+(?:" + _PARAMETER + rb")?+)*+[ \t]*+"
_JSON = re.compile(rb"application/json" + _PARAMETERS, re.I)
_JSON_OR_PATCH = re.compile(rb"application/(?:json|merge-patch\+json)" + _PARAMETERS, re.I)
_ONE_PARAMETER = re.compile(_PARAMETER)
_UTF_8 = (b"utf-8", b"utf8")
_LENGTH_DIGITS_MAX = 20


def check_body_headers(request: Request, *, patch: bool = False) -> None:
    """Declared size, then media type: JSON, in a PATCH also a merge patch.

    Raises InvalidHeader, PayloadTooLarge and UnsupportedMediaType.
    """
    length = request.headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > _LENGTH_DIGITS_MAX:
        raise InvalidHeader("Content-Length: expected the number of bytes of the body.")
    if int(length) > BODY_MAX_BYTES:
        raise _too_large()
    accept_patch = PATCH_TYPES if patch else ""
    encoding = request.headers.get(b"content-encoding") or b"identity"
    if encoding.lower() != b"identity" or b"content-encoding" in request.head.repeated:
        raise UnsupportedMediaType("Send the body as it is, without a Content-Encoding.", accept_patch)
    media_type = request.headers.get(b"content-type") or b""
    is_taken = media_type == b"application/json" or _is_json(media_type, patch)
    if b"content-type" in request.head.repeated or not is_taken:
        other = " or 'application/merge-patch+json'" if patch else ""
        raise UnsupportedMediaType(
            f"Send the body as JSON in UTF-8, with the header 'Content-Type: application/json'{other}.",
            accept_patch,
        )


@lru_cache(maxsize=64)
def _is_json(media_type: bytes, patch: bool) -> bool:
    """Whether it is JSON in UTF-8; unknown parameters are ignored. Cached, because clients repeat it."""
    pattern = _JSON_OR_PATCH if patch else _JSON
    return pattern.fullmatch(media_type) is not None and all(
        value.strip(b'"').lower() in _UTF_8
        for name, value in _ONE_PARAMETER.findall(media_type)
        if name.lower() == b"charset"
    )


async def read_body(request: Request, timeout_seconds: float) -> bytes:
    """The whole body, within a deadline for all of it.

    Raises RequestTimeout, PayloadTooLarge, and InvalidBody when the client closes before the end.
    """
    exchange = request.exchange
    body = exchange.take_body()
    if not exchange.is_complete:
        body += await _receive_rest(exchange, BODY_MAX_BYTES - len(body), timeout_seconds)
    if len(body) > BODY_MAX_BYTES:
        raise _too_large()
    return body


async def _receive_rest(exchange: Exchange, max_bytes: int, timeout_seconds: float) -> bytes:
    """The rest of the body; of a larger one at least one byte more than `max_bytes`."""
    pieces, size = [], 0
    try:
        async with asyncio.timeout(timeout_seconds):
            while not exchange.is_complete and size <= max_bytes:
                await exchange.wait_for_body()
                pieces.append(exchange.take_body())
                size += len(pieces[-1])
    except TimeoutError:
        raise RequestTimeout(f"The body did not arrive within {timeout_seconds:g} seconds.") from None
    except EOFError:
        raise InvalidBody("The body ended before it was complete; nothing was stored.") from None
    return b"".join(pieces)


def _too_large() -> PayloadTooLarge:
    return PayloadTooLarge(f"The body is larger than {BODY_MAX_BYTES} bytes.")
