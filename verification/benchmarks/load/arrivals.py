"""A receiver of webhooks, as cheap as it can be: it notes when each event of an animal arrives."""

from __future__ import annotations

import asyncio
import re
import time
from collections import defaultdict
from contextlib import AbstractContextManager

from tests.support.loops import serving_beside

_HEAD = re.compile(rb"POST (\S+) .*?content-length: (\d+).*?\r\n\r\n", re.DOTALL | re.IGNORECASE)
_SUBJECT = re.compile(rb'"data":\{"id":(\d+)')
_ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


class Arrivals:
    """The time of the first arrival by path and animal, on the clock of time.perf_counter; and how many
    requests there were. A path that begins with /dead gets no answer."""

    def __init__(self) -> None:
        self.at: dict[str, dict[int, float]] = defaultdict(dict)
        self.count = 0

    def taken(self) -> AbstractContextManager[int]:
        """The port, for the length of a block."""
        return serving_beside(lambda loop: loop.create_server(lambda: _Connection(self), "127.0.0.1", 0))

    def note(self, path: str, body: bytes) -> None:
        self.count += 1
        if found := _SUBJECT.search(body):
            self.at[path].setdefault(int(found[1]), time.perf_counter())


class _Connection(asyncio.Protocol):
    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while found := _HEAD.match(self._received):
            end = found.end() + int(found[2])
            if len(self._received) < end:
                return
            path = found[1].decode()
            if not path.startswith("/dead"):
                self._arrivals.note(path, self._received[found.end() : end])
                self._transport.write(_ANSWER)
            self._received = self._received[end:]
