"""The HTTP server in the test's own process, in front of a service whose clock is steered."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from petstore.server import listener as listeners
from petstore.server.worker import HttpServer
from tests.support.service import Shop


class Client:
    """One connection, on which requests are sent as bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, request: bytes) -> list[str]:
        """The lines of the answer's head, in lower case; its body is read too."""
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        lines = head.strip().split("\r\n")
        length = next((line for line in lines if line.startswith("content-length: ")), "content-length: 0")
        await self._reader.readexactly(int(length.partition(": ")[2]))
        return lines

    async def close(self) -> None:
        self._writer.close()
        await self._writer.wait_closed()


@pytest.fixture
async def client(shop: Shop) -> AsyncIterator[Client]:
    """A connection to the shop through the HTTP server."""
    listener = socket.create_server(("127.0.0.1", 0))
    listeners.prepare(listener)
    server = HttpServer(shop.application.answer, listener, 16)
    serving = asyncio.create_task(server.serve())
    opened = Client(*await asyncio.open_connection(*listener.getsockname()))
    try:
        yield opened
    finally:
        await opened.close()
        server.stop()  # type: ignore[no-untyped-call]
        await serving
        listener.detach()  # the server has closed it


PATHS = ("/v1/pets", "/v1/nothing", "/docs", "/healthz", "/metrics", "/openapi.json", "/nothing", "/docs/")


async def test_date_follows_the_clock_back(shop: Shop, client: Client) -> None:
    """On every kind of answer, once and at once: the HTTP server's own Date never goes back."""

    async def dates() -> set[str]:
        lines = f"Host: 127.0.0.1\r\nAuthorization: Bearer {shop.key}\r\n\r\n"
        heads = [await client.ask(f"GET {path} HTTP/1.1\r\n{lines}".encode()) for path in PATHS]
        return {line for head in heads for line in head if line.startswith("date")}

    assert await dates() == {"date: fri, 15 jan 2027 08:00:30 gmt"}
    shop.clock.advance(20 * 86_400)
    assert await dates() == {"date: thu, 04 feb 2027 08:00:30 gmt"}
    shop.clock.advance(-20 * 86_400)
    assert await dates() == {"date: fri, 15 jan 2027 08:00:30 gmt"}
