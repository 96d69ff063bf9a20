"""Requests to a service in the same process, by exchanges without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from petstore.http.exchange import Exchange
from petstore.http.heads import Head, Headers

# Sends a body that arrives after its head.
Feed = Callable[[Exchange], Awaitable[None]]


class Wire:
    """Implements petstore.http.exchange.Wire: keeps what is written. `closes`: the answer was the last."""

    is_draining = False

    def __init__(self) -> None:
        self.written = b""
        self.closes = False
        self._is_finished = asyncio.Event()

    def write(self, data: bytes) -> None:
        self.written += data

    def resume_reading(self) -> None:
        pass

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def finish(self, *, closes: bool) -> None:
        self.closes = closes
        self._is_finished.set()

    def abort(self) -> None:
        self.finish(closes=True)

    async def answer(self) -> tuple[int, Headers, bytes]:
        """Status, headers and body, once they are whole. Raises ConnectionError if there is no answer."""
        await self._is_finished.wait()
        head, end, body = self.written.partition(b"\r\n\r\n")
        if not end:
            raise ConnectionAbortedError
        first, *lines = head.split(b"\r\n")
        headers = [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]
        if (b"transfer-encoding", b"chunked") in headers:
            body = _joined(body)
        return int(first.split(b" ")[1]), headers, body


def _joined(chunks: bytes) -> bytes:
    body = b""
    while chunks:
        size, _, rest = chunks.partition(b"\r\n")
        body += rest[: int(size, 16)]
        chunks = rest[int(size, 16) + 2 :]
    return body


def arriving(pieces: Iterable[bytes], *, ends: bool = True, leaves: bool = False) -> Feed:
    """A body in pieces, each in a turn of the event loop. After them it ends, or else the client `leaves` or
    holds the rest back."""

    async def feed(exchange: Exchange) -> None:
        for piece in pieces:
            await asyncio.sleep(0)
            exchange.feed(piece)
        await asyncio.sleep(0)
        if leaves:
            exchange.body_lost()
            exchange.client_left()
        elif ends:
            exchange.complete()

    return feed


async def send(
    application: Callable[[Exchange], None],
    method: str,
    target: bytes,
    headers: Headers,
    body: bytes | Feed = b"",
    client: str = "127.0.0.1",
) -> tuple[int, Headers, bytes]:
    """One request, and its answer. A body of bytes comes with the head."""
    wire = Wire()
    path, _, query = target.partition(b"?")
    exchange = Exchange(wire, method, path, query, Head(headers), (client, 50_000))
    await asyncio.sleep(0)  # as from a socket: a request begins in a turn of the event loop of its own
    if isinstance(body, bytes):
        exchange.feed(body)
        exchange.complete()
        application(exchange)
        return await wire.answer()
    application(exchange)
    feeding = asyncio.ensure_future(body(exchange))
    try:
        return await wire.answer()
    finally:
        feeding.cancel()
