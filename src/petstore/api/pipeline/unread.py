"""Bodies that a request's answer left unread: read away, or the end of the connection announced.

The HTTP server closes a connection whose last body it has not got, and does not always say so. A client then
loses its next request on it (RFC 9112, sections 9.3 and 9.6).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from petstore.api.pipeline.body import BODY_MAX_BYTES
from petstore.api.pipeline.request import Receive
from petstore.api.pipeline.response import Header
from petstore.core.errors import RequestTimeout

CLOSE: Header = (b"connection", b"close")
_LAST = (CLOSE,)
READ_AWAY_SECONDS = 0.2
READ_AWAY_AT_ONCE = 256  # requests of this process; each holds a connection and a task


class UnreadBodies:
    """For all applications of a process together, because they share its bound."""

    def __init__(self) -> None:
        self._reading = 0

    async def settle(
        self, status: int, headers: Mapping[bytes, bytes], receive: Receive
    ) -> tuple[Header, ...]:
        """What an answer with this status says besides, if it leaves a body: nothing, or that it is the last.

        The rest of the body is read for at most 200 ms; not at all if it is too large or of an undeclared
        length, if the client holds it back until it is asked (Expect), after a 408, or while 256 requests
        wait here.
        """
        length = headers.get(b"content-length", b"")
        if (
            not length.isdigit()
            or int(length) > BODY_MAX_BYTES
            or b"transfer-encoding" in headers
            or b"expect" in headers
            or status == RequestTimeout.status
            or self._reading >= READ_AWAY_AT_ONCE
        ):
            return _LAST
        self._reading += 1
        try:
            async with asyncio.timeout(READ_AWAY_SECONDS):
                return () if await _discard(int(length), receive) else _LAST
        except TimeoutError:
            return _LAST
        finally:
            self._reading -= 1


async def _discard(length: int, receive: Receive) -> bool:
    """False when the client closes before the end."""
    more = length > 0
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return False
        length -= len(message.get("body", b""))
        more = length > 0 and message.get("more_body", False)
    return True
