"""What both clients know of the service: its checked address and key, its requests, and the end of each.

httpx2 bounds the silence of each step, so an answer that drips could go on. Its extension `trace` shows each
connection before and after it is opened. Every step asks how much of the call is left, also between the bytes
of a head.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import httpx2

from petstore_client.answers import Answer, Fault
from petstore_client.arguments import extra_headers
from petstore_client.calls import Call
from petstore_client.errors import ConfigurationError
from petstore_client.policy import Options, Send
from petstore_client.runtime import Runtime

logger = logging.getLogger("petstore_client")

__version__ = "1.1.0"
USER_AGENT = f"petstore-client/{__version__}"
# Bytes after decompression. A page of 100 animals is below 200 KB. httpx2 decodes at most 1 MiB at once.
ANSWER_MAX_BYTES = 16 * 2**20
# The errors of httpx2 before the first byte was sent.
_NOT_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
    httpx2.LocalProtocolError,
)

_OVER = "The seconds of the call are over."
_HOST = re.compile(r"[^\s\\]+")
_KEY = re.compile(r"pets_(?:live|test)_[0-9A-Za-z]{38}", re.ASCII)


def check_key(key: str) -> str:
    """The key; raises ConfigurationError, which does not show it."""
    if not _KEY.fullmatch(str(key)):  # None, where a variable is not set
        raise ConfigurationError(
            "This is not an API key. One is pets_live_ or pets_test_, then 38 letters and digits."
        )
    return key


def check_address(address: str, *, allow_http: bool) -> str:
    """The base address, ending in /v1; raises ConfigurationError.

    Plain http shows the key to the network, so it is for this machine only unless `allow_http`.
    """
    try:
        parts = urlsplit(str(address).strip())
        host, _ = parts.hostname, (parts.port, httpx2.URL(parts.geturl()))  # each finds faults of its own
        if host and (not _HOST.fullmatch(host) or not host.encode("idna")):
            raise ValueError
    except (ValueError, httpx2.InvalidURL):
        raise ConfigurationError(f"{address!r} is not an address such as https://pets.example.com.") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise ConfigurationError(
            "The base address starts with https:// and a host, or with http://localhost."
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError(
            "The base address has no user, query or fragment: only scheme, host and path."
        )
    if parts.scheme == "http" and not allow_http and not is_loopback(host):
        raise ConfigurationError(
            f"The key would go to {host} unencrypted. Use https."
            " In a trusted network a program of yours may pass allow_http=True."
        )
    path = parts.path.rstrip("/")
    if "/v1/" in path and not path.endswith("/v1"):
        raise ConfigurationError("The base address ends with /v1. Leave out what follows, such as /pets.")
    if not path.endswith("/v1"):
        path += "/v1"
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is surely this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Silence(float):
    """Seconds of silence that a step of a request takes: `timeout`, or what is left until `ends_at`.

    A read of a thread runs inside `reading`, which gets its connection.
    """

    now: Callable[[], Silence]
    reading: Callable[[Any], AbstractContextManager[None]] = nullcontext

    def __new__(cls, timeout: float, ends_at: float, clock: Callable[[], float]) -> Silence:
        silence = super().__new__(cls, max(0.0, min(timeout, ends_at - clock())))
        silence.now = partial(cls, timeout, ends_at, clock)
        return silence


def watch(event: str, info: dict[str, Any]) -> None:
    """Let each step of a request end with the call: connecting, TLS, and all that a connection does then."""
    if event.endswith((".connect_tcp.started", ".start_tls.started")):
        info["timeout"] = info["timeout"].now()
        if not info["timeout"]:
            raise httpx2.ConnectTimeout(_OVER)
    elif event.endswith((".connect_tcp.complete", ".start_tls.complete")):
        stream = info["return_value"]
        stream.read = partial(_timed, stream, stream.read)
        stream.write = partial(_timed, stream, stream.write)


async def watch_async(event: str, info: dict[str, Any]) -> None:
    """Watch as `watch` does; httpx2 awaits it."""
    watch(event, info)


def _timed(stream: Any, step: Callable[[Any, float], Any], argument: Any, timeout: Silence) -> Any:
    left = timeout.now()
    if not left:
        raise httpx2.ReadTimeout(_OVER)
    with timeout.reading(stream):
        return step(argument, left)


class Connection:
    """What both clients know of the service: address, key, options, and the limiter that they share."""

    def __init__(
        self, address: str, key: str, options: Options, runtime: Runtime, *, allow_http: bool
    ) -> None:
        self.address = check_address(address, allow_http=allow_http)
        self.options = options
        self.runtime = runtime
        self._key = check_key(key)
        self._headers: dict[str, str] = {}
        self.limiter = runtime.limiter(self.address, key)

    def with_options(
        self,
        tries: int | None,
        seconds: float | None,
        timeout: float | None,
        headers: Mapping[str, str] | None,
        request_id: str | None,
    ) -> Connection:
        """A copy with the options that are not None, and headers beside those that it has."""
        other = copy(self)
        other.options = self.options.with_changes(tries, seconds, timeout)
        other._headers = {**self._headers, **extra_headers(headers or {}, request_id)}
        return other

    def request(
        self,
        call: Call[Any],
        step: Send,
        watch: Callable[[str, dict[str, Any]], object],
        reading: Callable[[Any], AbstractContextManager[None]] = nullcontext,
    ) -> dict[str, Any]:
        """The arguments of httpx2's `stream`."""
        timeout, clock = self.options.timeout, self.runtime.monotonic
        silence = Silence(timeout, step.ends_at, clock)
        until_answer = Silence(timeout + call.wait_seconds, step.ends_at, clock)
        until_answer.reading = reading
        own = {"Authorization": f"Bearer {self._key}", "User-Agent": USER_AGENT}
        return {
            "method": call.method,
            "url": self.address + call.path,
            "params": call.parameters or None,
            "headers": httpx2.Headers({**self._headers, **call.headers, **own}),  # whose repr hides the key
            "content": call.content,
            "extensions": {
                "timeout": {"pool": silence, "connect": silence, "write": silence, "read": until_answer},
                "trace": watch,
            },
        }

    def fault(self, error: httpx2.RequestError, call: Call[Any]) -> Fault:
        """Why there was no whole response."""
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        said = f"{call.operation} got no answer from {self.address}. {reason}"
        return Fault(said, sent=not isinstance(error, _NOT_SENT))

    def log(self, call: Call[Any], send: Send) -> None:
        """Log why a call, or a try after a fault, did not begin at once."""
        if send.waited_for:
            logger.info("%s waited %.1f s: %s", call.operation, send.waited_seconds, send.waited_for)

    def __repr__(self) -> str:
        return f"<Connection to {self.address}>"


def answer_of(response: httpx2.Response, content: bytearray) -> Answer:
    """A response whose body was read, up to its bound."""
    whole = bytes(content) if len(content) <= ANSWER_MAX_BYTES else None
    return Answer(response.status_code, response.headers, whole, str(response.url))
