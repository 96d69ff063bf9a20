"""Many connections without a key, each with a request on its way."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from petstore.core.keys import mint

CONNECTIONS = 1_300  # more than the 1,024 that may wait for a connection to the store
_KEYS = 2_000
_PATIENCE_SECONDS = 120.0

READINESS = [b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"]


def unknown_keys() -> list[bytes]:
    """Requests with keys of the right form and checksum that nobody was given."""
    ask = b"GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n"
    return [ask % mint("live").encode() for _ in range(_KEYS)]


class Flood:
    """Closed-loop connections in a thread of their own; `statuses` counts what they were answered."""

    def __init__(self, port: int, requests: list[bytes]) -> None:
        self.statuses: Counter[int] = Counter()
        self.broken = 0
        self._port = port
        self._requests = itertools.cycle(requests)
        self._going = True

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """All of them, for the length of the block; begun when each has been answered once."""
        thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._begun = threading.Barrier(2)
        thread.start()
        self._begun.wait(_PATIENCE_SECONDS)
        try:
            yield
        finally:
            self._going = False
            thread.join(_PATIENCE_SECONDS)

    async def _run(self) -> None:
        first = [asyncio.Event() for _ in range(CONNECTIONS)]
        tasks = [asyncio.create_task(self._client(event)) for event in first]
        for event in first:
            await event.wait()
        await asyncio.to_thread(self._begun.wait, _PATIENCE_SECONDS)
        await asyncio.gather(*tasks)

    async def _client(self, answered: asyncio.Event) -> None:
        try:
            async with asyncio.timeout(None) as bound:
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                while self._going:
                    bound.reschedule(asyncio.get_running_loop().time() + _PATIENCE_SECONDS)
                    writer.write(next(self._requests))
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
                    await reader.readexactly(length)
                    self.statuses[int(head[9:12])] += 1
                    answered.set()
                writer.close()
        except (OSError, EOFError, TimeoutError):
            self.broken += 1
        answered.set()
