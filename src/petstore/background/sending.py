"""One attempt to send a webhook over HTTP, guarded against forged targets.

A name is resolved once for each new connection, every address of it is checked, and the connection goes to
what was checked. An answer takes at most the deadline, 64 KiB of a body (512 KiB in all) and a connection.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Self

import aiohttp
import msgspec
import structlog
from yarl import URL

from petstore.background.connecting import AddressRefused, CheckedResolver, Connector
from petstore.core.clock import Clock
from petstore.core.durations import SECOND_MS
from petstore.core.printable import printable, shortened
from petstore.core.targets import UrlGuard
from petstore.core.webhooks import ANSWER_KEPT_CHARACTERS

READ_MAX = 65_536  # bytes of an answer: a longer one costs its connection
SHOWN_MAX = 1_024  # bytes
_SHOWN_CHARACTERS = 200  # what a sentence has of a receiver's text

# Descriptors, memory or local ports.
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EADDRNOTAVAIL)

_log = structlog.get_logger("petstore.webhooks")


class Answer(msgspec.Struct, frozen=True):
    """The outcome of an attempt. Its texts are printable. `is_ours`: the receiver was not called, for want of
    this machine's own resources."""

    status: int | None  # None: there was no answer, and `fault` says why
    fault: str | None = None  # a sentence
    text: str = ""  # the beginning of the body
    retry_after_seconds: int | None = None
    duration_ms: int = 0
    is_ours: bool = False

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status <= 299


class Sender:
    """Sends over one pool of connections, which callers bound. An asynchronous context manager.

    `proxy` is the URL of an egress proxy, which then resolves names and has to judge their addresses.
    """

    def __init__(
        self, guard: UrlGuard, *, proxy: str = "", clock: Clock, version: str, deadline_seconds: float = 15.0
    ) -> None:
        self._guard = guard
        self._proxy = proxy
        self._clock = clock
        self._headers = {
            "User-Agent": f"petstore-webhooks/{version}",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
        }
        self._deadline_seconds = deadline_seconds

    async def __aenter__(self) -> Self:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        self._resolver = CheckedResolver(None if self._proxy else self._guard)
        self._session = aiohttp.ClientSession(
            connector=Connector(self._resolver, context),
            proxy=self._proxy or None,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(),
            read_bufsize=READ_MAX // 2,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()
        await self._resolver.close()

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """POST a body. Ends within the deadline, and raises nothing but CancelledError."""
        if (fault := self._guard.fault_of_url(url)) is not None:
            return Answer(None, f"The URL can't be called: {fault}.")
        began = self._clock.monotonic()
        answer = await self._try(url, body, headers)
        duration_ms = round((self._clock.monotonic() - began) * SECOND_MS)
        return msgspec.structs.replace(answer, duration_ms=duration_ms)

    async def _try(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        response: aiohttp.ClientResponse | None = None
        read = bytearray()
        fault: str | None = None
        try:
            async with asyncio.timeout(self._deadline_seconds):
                response = await self._session.post(
                    URL(url, encoded=True), data=body, headers=headers, allow_redirects=False
                )
                with suppress(aiohttp.ClientError):  # the status counts, whatever is wrong with the body
                    while len(read) < READ_MAX and (chunk := await response.content.readany()):
                        read += chunk
        except TimeoutError:
            fault = f"No answer within {self._deadline_seconds:g} s."
        except AddressRefused as error:
            fault = str(error)
        except Exception as error:
            if isinstance(error, OSError) and error.errno in _EXHAUSTED:
                return Answer(
                    None, f"This service lacks resources: {os.strerror(error.errno)}.", is_ours=True
                )
            fault = _sentence(error, bool(self._proxy))
        finally:
            if response is not None:
                response.close()  # the connection too, unless the body was read to its end
        if response is None:
            return Answer(None, fault)
        return Answer(
            response.status,
            _fault_of_redirect(response),
            printable(read[:SHOWN_MAX].decode(errors="replace"))[:ANSWER_KEPT_CHARACTERS],
            _retry_after_seconds(response.headers.get("Retry-After", ""), self._clock.now_ms()),
        )


def _sentence(error: Exception, has_proxy: bool) -> str:
    """Why there was no answer. The text of an unexpected error goes to the log only."""
    match error:
        case aiohttp.ClientHttpProxyError():
            return f"The proxy answered {error.status}."
        case aiohttp.ClientResponseError():
            what = error.message.partition(":")[0].partition("\n")[0]  # then it cites the answer
            return f"The answer is not HTTP: {what}."
        case aiohttp.ServerDisconnectedError():
            return "The connection was closed without an answer."
        case aiohttp.ClientProxyConnectionError():
            return "The proxy can't be reached."
        case aiohttp.ClientConnectorDNSError():
            if has_proxy:
                return "The proxy can't be reached."
            can_come_back = error.errno == socket.EAI_AGAIN
            return f"The name {error.host} {'could not be looked up' if can_come_back else 'is not known'}."
        case OSError():
            return _sentence_of_connection(error)
    _log.error("webhook not sent", exc_info=error)
    return "The try failed by a fault of this service."


def _sentence_of_connection(error: OSError) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        reason = getattr(error.certificate_error, "verify_message", "")
        return f"The certificate is not valid: {reason.rstrip('.')}."
    if tls := re.match(r"\[SSL: (\w+)]", error.strerror or ""):
        return f"TLS failed: {tls[1].replace('_', ' ').lower()}."
    if isinstance(error, ConnectionResetError) or error.errno in (errno.ECONNRESET, errno.EPIPE):
        return "The connection was reset."
    if error.errno == errno.ECONNREFUSED:
        return "The connection was refused."
    reason = os.strerror(error.errno) if error.errno else "none of its addresses could be reached"
    return f"The connection failed: {reason}."


def _fault_of_redirect(response: aiohttp.ClientResponse) -> str | None:
    if response.status not in (301, 302, 303, 307, 308):
        return None
    location = shortened(printable(response.headers.get("Location", "nowhere")), _SHOWN_CHARACTERS)
    return f"Redirects are not followed: this one leads to {location}."


def _retry_after_seconds(text: str, now_ms: int) -> int | None:
    """Seconds from now, of a number or a date (RFC 9110, section 10.2.3); None for anything else."""
    if re.fullmatch(r"[0-9]{1,9}", text):
        return int(text)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return max(0, round(at.replace(tzinfo=at.tzinfo or UTC).timestamp() - now_ms / SECOND_MS))
