"""Receivers of webhooks that answer with the bytes that a test gives, names, and a proxy."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest

from petstore.background.sending import Sender
from petstore.core.targets import UrlGuard
from tests.support.clock import ManualClock

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
AT_HOME = UrlGuard(allows_loopback=True)

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Respond = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Receiver:
    """A server on loopback. It keeps the requests, and counts connections."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []
        self.names: list[str | None] = []  # of SNI
        self.closed = asyncio.Event()  # the last connection has ended

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def serve(
        self, respond: Respond, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answer requests until the connection ends."""
        self.connections += 1
        self.closed.clear()
        try:
            while not writer.is_closing():
                self.requests.append(await read_message(reader))
                await respond(writer)
                await writer.drain()
        finally:
            self.closed.set()


@asynccontextmanager
async def listening(
    handle: Handle, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """A server of this machine, its port, for the length of a block."""
    running: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await handle(reader, writer)
        finally:
            writer.transport.abort()
            running.discard(task)

    server = await asyncio.start_server(serve, host, port, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        ending = list(running)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)


async def read_message(reader: asyncio.StreamReader) -> bytes:
    """A request or an answer, with its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return head + (await reader.readexactly(int(lengths[0].partition(b":")[2])) if lengths else b"")


def saying(*parts: bytes) -> Respond:
    """Answers with the same bytes each time."""

    async def respond(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return respond


def closing(*parts: bytes) -> Respond:
    """Answers, and ends the connection."""
    say = saying(*parts)

    async def respond(writer: asyncio.StreamWriter) -> None:
        await say(writer)
        writer.close()

    return respond


def repeating(first: bytes, then: bytes) -> Respond:
    """Answers, and goes on until nobody listens."""

    async def respond(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while not writer.is_closing():
            writer.write(then)
            await writer.drain()
            await asyncio.sleep(0)

    return respond


@asynccontextmanager
async def receiving(
    respond: Respond, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    """A receiver for the length of a block."""
    receiver = Receiver()
    if tls is not None:
        tls.sni_callback = lambda _, name, __: receiver.names.append(name)

    async with listening(partial(receiver.serve, respond), host, port, tls) as receiver.port:
        yield receiver


def sender(guard: UrlGuard = AT_HOME, *, proxy: str = "", deadline_seconds: float = 20.0) -> Sender:
    """A sender with a clock that stands."""
    clock = ManualClock()
    return Sender(guard, proxy=proxy, clock=clock, version="1.2.3", deadline_seconds=deadline_seconds)


class Names:
    """Answers look-ups instead of the machine, in turn where a name has several answers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, table: Mapping[str, list[str]]) -> None:
        self.asked: list[str] = []
        self._table = {name: list(answers) for name, answers in table.items()}
        monkeypatch.setattr(socket, "getaddrinfo", self._look_up)

    def _look_up(self, host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        self.asked.append(host)
        if not (answers := self._table.get(host.lower().rstrip("."))):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        texts = (answers.pop(0) if len(answers) > 1 else answers[0]).split()
        found: list[tuple[object, ...]] = []
        for text in texts:
            family = socket.AF_INET6 if ":" in text else socket.AF_INET
            place = (text, port, 0, 0) if ":" in text else (text, port)
            found.append((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place))
        return found


class Proxy:
    """An egress proxy that knows CONNECT, and connects every name to this machine."""

    def __init__(self, refusal: bytes) -> None:
        self.heads: list[bytes] = []
        self._refusal = refusal

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await read_message(reader))
        if self._refusal:
            writer.write(self._refusal)
            await reader.read()
            return
        port = int(self.heads[-1].split()[1].rpartition(b":")[2])
        there, back = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_carry(reader, back), _carry(there, writer))
        finally:
            back.transport.abort()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
    writer.close()


@asynccontextmanager
async def proxying(refusal: bytes = b"") -> AsyncIterator[tuple[str, Proxy]]:
    """A proxy's place and itself; with a refusal it answers that to everybody."""
    proxy = Proxy(refusal)
    async with listening(proxy.serve) as port:
        yield f"127.0.0.1:{port}", proxy
