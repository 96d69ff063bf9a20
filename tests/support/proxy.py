"""A network that misbehaves: a proxy in the test's own event loop that cuts, holds back and swallows.

It knows no protocol, but for how PostgreSQL's clients ask for TLS; what it waits for is a run of bytes that
the test expects on the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

Place = tuple[str, int] | Path
_CHUNK = 65_536


class _Line:
    """One client's connection and its way to the server."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.writers = (client, server)
        self.swallowing = False
        self.asking = False
        self.answers_at = 0.0

    def cut(self) -> None:
        for writer in self.writers:
            writer.transport.abort()


class Proxy:
    """Forwards everything, until a test says otherwise. Counts `questions` that wait for an answer.

    `delay_seconds`: an answer comes so long after its question, or later if the server is late.
    """

    def __init__(self, upstream: Place, tls: ssl.SSLContext | None, *, asked_for_tls: bool) -> None:
        self._upstream = upstream
        self._tls = tls
        self._asked_for_tls = asked_for_tls
        self._lines: set[_Line] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._listener: asyncio.Server | None = None
        self._needle = b""
        self.delay_seconds = 0.0
        self.port = 0
        self.cuts = 0
        self.accepted = 0
        self.questions = 0

    @property
    def open_lines(self) -> int:
        """How many clients are connected."""
        return len(self._lines)

    async def listen(self) -> None:
        """Listen on a port of the loopback, the same one again after `refuse`."""
        tls = None if self._asked_for_tls else self._tls
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self.port, ssl=tls)
        self.port = self._listener.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Take no further connections; those that are open stay."""
        assert self._listener is not None
        self._listener.close()

    def hold(self) -> None:
        """Forward nothing more, in neither direction: to both ends the other one hangs."""
        self._flowing.clear()

    def release(self) -> None:
        """Forward what was held back, and go on."""
        self._flowing.set()

    def lead_to(self, upstream: Place) -> None:
        """Take further connections somewhere else."""
        self._upstream = upstream

    def cut(self) -> None:
        """Break every connection, as a router that was switched off and on."""
        for line in list(self._lines):
            line.cut()

    async def say(self, message: bytes) -> None:
        """Send every client a message in the server's name; clients in this loop have read it then."""
        for line in self._lines:
            line.writers[0].write(message)
        for _ in range(3):
            await asyncio.sleep(0)

    def cut_before_the_answer(self, needle: bytes) -> None:
        """Let the next bytes with `needle` in them through, wait for the server's answer to them, and cut.

        The server has done what it was asked by then, and the client will never know.
        """
        self._needle = needle

    async def close(self) -> None:
        """Stop, with every connection."""
        self.refuse()
        self.cut()
        self.release()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.accepted += 1
        try:
            await self._serve(reader, client)
        except (OSError, asyncio.CancelledError):
            pass  # an end of the line is gone, or the test is over
        finally:
            client.transport.abort()
            self._tasks.discard(task)

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        await self._flowing.wait()
        if self._tls is not None and self._asked_for_tls:
            await self._encrypt(reader, client)
        if isinstance(self._upstream, Path):
            answers, server = await asyncio.open_unix_connection(self._upstream)
        else:
            answers, server = await asyncio.open_connection(*self._upstream)
        line = _Line(client, server)
        self._lines.add(line)
        try:
            questions = asyncio.create_task(self._forward(line, reader, server))
            try:
                await self._return(line, answers, client)
            finally:
                questions.cancel()
                await asyncio.gather(questions, return_exceptions=True)
        finally:
            self._lines.discard(line)
            line.cut()

    async def _encrypt(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        """PostgreSQL's clients ask for TLS in eight bytes of their own protocol, and begin it after a yes."""
        assert self._tls is not None
        await reader.readexactly(8)
        client.write(b"S")
        await client.drain()
        await client.start_tls(self._tls)

    async def _forward(self, line: _Line, reader: asyncio.StreamReader, server: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(_CHUNK):
            await self._flowing.wait()
            if self._needle and self._needle in chunk:
                self._needle = b""
                line.swallowing = True
            if not line.asking:
                line.asking = True
                self.questions += 1
                line.answers_at = asyncio.get_running_loop().time() + self.delay_seconds
            server.write(chunk)
            await server.drain()
        line.cut()

    async def _return(self, line: _Line, answers: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        while chunk := await answers.read(_CHUNK):
            await asyncio.sleep(line.answers_at - asyncio.get_running_loop().time())
            await self._flowing.wait()
            if line.swallowing:
                self.cuts += 1
                return
            line.asking = False
            client.write(chunk)
            await client.drain()


@asynccontextmanager
async def open_proxy(
    upstream: Place, tls: ssl.SSLContext | None = None, *, asked_for_tls: bool = True
) -> AsyncIterator[Proxy]:
    """A proxy that listens for the length of the block.

    `tls`: it encrypts, for a PostgreSQL when the client has asked for that, else from the first byte on.
    """
    proxy = Proxy(upstream, tls, asked_for_tls=asked_for_tls)
    await proxy.listen()
    try:
        yield proxy
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await proxy.close()
