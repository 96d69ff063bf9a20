"""Applications of ASGI behind an Exchange: the pages, which are Starlette's."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import structlog

from petstore.http.exchange import BODILESS, Exchange
from petstore.http.heads import render

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
HeadersMaker = Callable[[], list[tuple[bytes, bytes]]]

_NO_VALUE = re.compile(rb"[\0\r\n]")

_log = structlog.get_logger("petstore")


class AsgiBridge:
    """Answers exchanges by an application of ASGI 3.0; `always` makes further headers of each answer.

    Paths are not decoded, like those under /v1. `has_left` in a scope says whether the client has gone.
    """

    def __init__(self, application: Application, always: HeadersMaker) -> None:
        self._application = application
        self._always = always

    def __call__(self, exchange: Exchange) -> None:
        exchange.task = asyncio.get_running_loop().create_task(self._answer(exchange))

    async def _answer(self, exchange: Exchange) -> None:
        try:
            await self._application(_scope(exchange), _Receiving(exchange), _Sending(exchange, self._always))
        except Exception as error:  # the application has logged what it answered
            if not exchange.is_answered:
                _log.error("unexpected error", exc_info=error)
        if not exchange.is_answered:
            exchange.abort()


def _scope(exchange: Exchange) -> MutableMapping[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": exchange.method,
        "scheme": "http",
        "path": exchange.path.decode("latin-1"),
        "raw_path": exchange.path,
        "query_string": exchange.query,
        "root_path": "",
        "headers": exchange.head.headers,
        "client": exchange.client,
        "has_left": exchange.has_left,
    }


class _Receiving:
    """The channel `receive`."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._is_read = False

    async def __call__(self) -> Message:
        if self._is_read:
            await self._exchange.wait_for_disconnect()
            return {"type": "http.disconnect"}
        try:
            await self._exchange.wait_for_body()
        except EOFError:
            self._is_read = True
            return {"type": "http.disconnect"}
        body = self._exchange.take_body()
        self._is_read = self._exchange.is_complete
        return {"type": "http.request", "body": body, "more_body": not self._is_read}


class _Sending:
    """The channel `send`. A body that is known when it begins is sent with its head."""

    def __init__(self, exchange: Exchange, always: HeadersMaker) -> None:
        self._exchange = exchange
        self._always = always
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._has_begun = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], [*message["headers"], *self._always()]
            return
        body, is_last = message.get("body", b""), not message.get("more_body", False)
        exchange, length = self._exchange, self._length()
        is_whole = is_last and (exchange.method != "HEAD" or length is None)
        if not self._has_begun and is_whole:
            exchange.answer(self._status, self._lines(), None if self._status in BODILESS else body)
            return
        if not self._has_begun:
            self._has_begun = True
            exchange.begin(self._status, self._lines(), length)
        await exchange.write(body)
        if is_last:
            exchange.end()

    def _length(self) -> int | None:
        """The body's length, as the application declares it."""
        value = dict(self._headers).get(b"content-length")
        return None if value is None else int(value)

    def _lines(self) -> bytes:
        """Raises ValueError for a value that would begin another line."""
        headers = [header for header in self._headers if header[0] != b"content-length"]
        if any(_NO_VALUE.search(value) for _, value in headers):
            raise ValueError("a header of more than one line")
        return render(headers)
