"""Is a request to a webhook the service's? Signatures by Standard Webhooks 1.0. Does no I/O."""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Iterable
from typing import Protocol

from petstore_client.errors import ConfigurationError, InvalidSignature, UnexpectedAnswer
from petstore_client.models import Event, read_event
from petstore_client.runtime import PROCESS

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_SECRET = "whsec_"
_SECRET_BYTES = range(24, 65)  # by Standard Webhooks; the service makes 32
_UNIX_SECONDS = re.compile("[0-9]{1,12}")


class Headers(Protocol):
    """The headers of a request: a mapping, or what frameworks have instead."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Names, in any case, and values."""


def verify(
    body: bytes,
    headers: Headers,
    secret: str | Iterable[str],
    *,
    tolerance_seconds: float = 300,
    now: float | None = None,
) -> Event:
    """The event of a request to a webhook; raises InvalidSignature, ConfigurationError for a wrong secret.

    `body` is as it came, byte for byte. Give several secrets while one takes the place of another. The
    request is at most `tolerance_seconds` older or younger than `now`: Unix time, by default this moment.
    The service sends an event again when it got no answer: it has the same `id`. Ignore unknown types.
    """
    keys = [_key(each) for each in ([secret] if isinstance(secret, str) else secret)]
    if not keys:
        raise ConfigurationError("Give at least one secret.")
    given = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in (ID, TIMESTAMP, SIGNATURE) if not given.get(name)]
    if missing:
        raise InvalidSignature(
            f"The request has no {', '.join(missing)}. Refuse it; if the service sent it, see that proxies"
            " pass these headers on."
        )
    _check_age(given[TIMESTAMP], PROCESS.wall() if now is None else now, tolerance_seconds)
    expected = [_signature(key, given[ID], given[TIMESTAMP], body) for key in keys]
    signatures = [_bytes(each) for each in given[SIGNATURE].split(" ")]
    if not any(hmac.compare_digest(one, other) for one in expected for other in signatures):
        raise InvalidSignature(
            "No signature fits. Refuse the request; if the service sent it, give the webhook's own secret,"
            " and the body byte for byte as it came, not parsed and written again."
        )
    try:
        return read_event(json.loads(body))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UnexpectedAnswer(f"The body is signed, but no event of the service: {error}.") from None


def sign(event_id: str, timestamp: int, body: bytes, secret: str) -> dict[str, str]:
    """The headers that a request to a webhook has; `timestamp` is Unix time. For tests of receivers."""
    signature = _signature(_key(secret), event_id, str(timestamp), body).decode()
    return {ID: event_id, TIMESTAMP: str(timestamp), SIGNATURE: signature}


def check_secret(secret: str) -> str:
    """The secret; raises ConfigurationError, which does not show it."""
    _key(secret)
    return secret


def _key(secret: str) -> bytes:
    text = str(secret).strip()
    try:
        key = base64.b64decode(text.removeprefix(_SECRET), validate=True)
    except ValueError:
        key = b""
    if not text.startswith(_SECRET) or len(key) not in _SECRET_BYTES:
        raise ConfigurationError(
            f"This is not a webhook's secret. One is {_SECRET}, then 32 bytes in Base64."
        )
    return key


def _signature(key: bytes, event_id: str, timestamp: str, body: bytes) -> bytes:
    signed = b".".join((_bytes(event_id), timestamp.encode(), body))
    return b"v1," + base64.b64encode(hmac.digest(key, signed, "sha256"))


def _bytes(text: str) -> bytes:
    """The bytes of a header, in which some servers have a lone surrogate for each byte that is not UTF-8."""
    return text.encode(errors="surrogatepass")


def _check_age(timestamp: str, now: float, tolerance_seconds: float) -> None:
    if not _UNIX_SECONDS.fullmatch(timestamp):
        raise InvalidSignature(f"{TIMESTAMP} is no Unix time. Refuse the request: it is not the service's.")
    age = now - int(timestamp)
    if abs(age) > tolerance_seconds:
        when = f"{age:.0f} s ago" if age > 0 else f"{-age:.0f} s in the future"
        raise InvalidSignature(
            f"The request was signed {when}, and {tolerance_seconds:.0f} s are allowed. Refuse it; if the"
            " service sent it just now, set this machine's clock."
        )
