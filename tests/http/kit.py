"""A connection without a socket, and the server on one of loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Self

from petstore.http.connection import Connection
from petstore.http.exchange import Exchange
from petstore.http.head_cache import HeadCache
from petstore.http.server import HttpServer
from petstore.server import listener as listeners

HOST = b"Host: a\r\n"
READ_BYTES = 8_192
TEXT = b"content-type: text/plain\r\n"


def get(
    target: bytes = b"/", lines: bytes = b"", *, method: bytes = b"GET", version: bytes = b"1.1"
) -> bytes:
    """The head of a request."""
    return b"%b %b HTTP/%b\r\n%b%b\r\n" % (method, target, version, HOST, lines)


def post(lines: bytes, target: bytes = b"/", body: bytes = b"") -> bytes:
    """A POST, or its beginning."""
    return get(target, lines, method=b"POST") + body


def ok(body: bytes, *, closes: bool = False) -> bytes:
    """What `echo` and `Later` answer."""
    ending = b"connection: close\r\n" if closes else b""
    return b"HTTP/1.1 200 OK\r\n%b%bcontent-length: %d\r\n\r\n%b" % (TEXT, ending, len(body), body)


def echo(exchange: Exchange) -> None:
    """Answer at once, with the path."""
    exchange.answer(200, TEXT, exchange.path)


class Later:
    """An application that answers when a test says so."""

    def __init__(self) -> None:
        self.seen: list[Exchange] = []

    def __call__(self, exchange: Exchange) -> None:
        self.seen.append(exchange)

    @property
    def last(self) -> Exchange:
        return self.seen[-1]

    @property
    def asked(self) -> list[tuple[str, bytes]]:
        """Method and path of each request."""
        return [(exchange.method, exchange.path) for exchange in self.seen]

    def answer(self) -> None:
        """The last request."""
        echo(self.last)


class Reader(Later):
    """An application that reads the whole body, and answers with it."""

    def __call__(self, exchange: Exchange) -> None:
        super().__call__(exchange)
        exchange.task = asyncio.create_task(self._read(exchange))

    async def _read(self, exchange: Exchange) -> None:
        body = exchange.take_body()
        while not exchange.is_complete:
            await exchange.wait_for_body()
            body += exchange.take_body()
        exchange.answer(200, TEXT, body)


class Kernel:
    """The socket of a client that has acknowledged nothing, with nothing in its queue."""

    def fileno(self) -> int:
        return -1

    def setsockopt(self, *_: object) -> None:
        pass

    def getsockopt(self, *_: int) -> bytes:
        return bytes(256)


class Transport(asyncio.Transport):
    """Keeps what is written. `unread`: bytes that the client has not taken."""

    def __init__(self, kernel: object = None) -> None:
        super().__init__({"peername": ("192.0.2.1", 50_000), "socket": kernel or Kernel()})
        self.written = b""
        self.unread = 0
        self.is_paused = False
        self.has_ended = False
        self.end = ""

    def write(self, data: Any) -> None:
        assert not self.has_ended
        assert not self.end
        self.written += data

    def write_eof(self) -> None:
        assert not self.end
        self.has_ended = True

    def close(self) -> None:
        self.end = self.end or "close"

    def abort(self) -> None:
        self.end = "abort"

    def is_closing(self) -> bool:
        return bool(self.end)

    def pause_reading(self) -> None:
        assert not self.is_paused
        assert not self.end
        self.is_paused = True

    def resume_reading(self) -> None:
        assert self.is_paused
        assert not self.end
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return self.unread


class Peer:
    """The client of one connection, and the server that has no other; `head_cache` may be shared."""

    def __init__(
        self, application: Callable[[Exchange], None] = echo, head_cache: HeadCache | None = None
    ) -> None:
        self.application = application
        self.head_cache = head_cache or HeadCache()
        self.is_draining = False
        self.now = 100.0
        self.late = 0.0  # seconds that `now` is behind
        self._is_reading = False
        self._soon: list[Callable[[], object]] = []
        self.open: set[Connection] = set()
        self.transport = Transport()
        self.connection = Connection(self)
        self.connection.connection_made(self.transport)

    def time(self) -> float:
        return self.now + self.late

    def call_soon(self, callback: Callable[[], object]) -> None:
        """What a read asks for is done after it, without a turn of the loop."""
        if self._is_reading:
            self._soon.append(callback)
        else:
            asyncio.get_running_loop().call_soon(callback)

    def opened(self, connection: Connection) -> None:
        self.open.add(connection)

    def closed(self, connection: Connection) -> None:
        self.open.remove(connection)

    def send(self, *pieces: bytes) -> None:
        """Each piece arrives by itself, or in several reads."""
        for piece in pieces:
            for at in range(0, len(piece), READ_BYTES):
                assert not self.transport.is_paused, "nobody reads"
                self.read(piece[at : at + READ_BYTES])

    def read(self, data: bytes) -> None:
        """One read of the server."""
        self.connection.get_buffer(-1)[: len(data)] = data
        self._is_reading = True
        self.connection.buffer_updated(len(data))
        self._is_reading = False
        while self._soon:
            self._soon.pop(0)()

    def end(self) -> None:
        """The client sends nothing any more, as a transport acts on it."""
        if not self.connection.eof_received():
            self.transport.close()

    def lose(self) -> None:
        """The client is gone."""
        self.transport.end = "lost"
        self.connection.connection_lost(None)

    def check(self, seconds: float) -> str:
        """How the connection has ended when the server checks it after so many seconds."""
        self.now += seconds
        self.connection.check(60.0)
        return self.transport.end

    @property
    def written(self) -> bytes:
        """What came since it was last read."""
        written, self.transport.written = self.transport.written, b""
        return written

    async def answers(self) -> bytes:
        """All that is written in the next turns of the loop."""
        for _ in range(10):
            await asyncio.sleep(0)
        return self.written


class Client:
    """A client on a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self, *pieces: bytes) -> bytes:
        """The head of the answer, and a body whose length it says."""
        for piece in pieces:
            self.writer.write(piece)
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        return head + await self.reader.readexactly(int(length or b"0"))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()
        await asyncio.sleep(0)


class Serving:
    """An HttpServer that runs, and the way to it."""

    def __init__(self, server: HttpServer, address: tuple[str, int], task: asyncio.Task[None]) -> None:
        self.server = server
        self.address = address
        self.task = task

    async def connect(self) -> Client:
        return Client(*await asyncio.open_connection(*self.address))


@asynccontextmanager
async def serving(
    application: Callable[[Exchange], None] = echo, *, connections: int = 16, timeout_seconds: float = 60.0
) -> AsyncIterator[Serving]:
    """Serve on a port of loopback, and stop."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listeners.prepare(listener)
        server = HttpServer(application, listener, connections, timeout_seconds)
        task = asyncio.create_task(server.serve())
        try:
            yield Serving(server, listener.getsockname(), task)
        finally:
            server.stop(1.0)
            server.end_all()
            await task
