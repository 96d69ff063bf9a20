"""The ceiling: the least that an application can do on the same HTTP server with the same settings.

python -m verification.benchmarks.ceiling PORT BODY_BYTES [headers], the last word for the headers of a list.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys

import uvloop

from petstore.api.pipeline.response import limit_lines, make_representation
from petstore.core.clock import SystemClock
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.quota import decide
from petstore.core.limits.windows import AccountWindows
from petstore.http.exchange import Exchange
from petstore.http.server import BACKLOG, HttpServer
from petstore.server.listener import prepare
from petstore.server.worker import collect_garbage_seldom


class Plaintext:
    """Answers every request with the same bytes: one header, or those of a list, made once."""

    def __init__(self, size: int, *, like_a_list: bool = False) -> None:
        self._body = b"x" * size
        self._lines = b"content-type: application/json\r\n"
        if like_a_list:
            self._lines = _lines_of_a_list(self._body)

    def __call__(self, exchange: Exchange) -> None:
        exchange.answer(200, self._lines, self._body)


def _lines_of_a_list(body: bytes) -> bytes:
    links = b'</v1/pets?limit=20&status=available&cursor=AAAAAAAAAAAA>; rel="next", '
    first = b'</v1/pets?limit=20&status=available>; rel="first"'
    response = make_representation(body, b'"AAAAAAAAAAAAAAAAAAAAAA"', (b"link", links + first))
    caller = Caller(1, 1, (1_000_000_000, 1_000_000_000))
    decision = decide(AccountWindows(), None, caller, BanPolicy(), SystemClock().now_ms())
    return limit_lines(decision, b"0123456789ab-1000") + response.lines


async def serve(port: int, body_bytes: int, *, like_a_list: bool) -> None:
    """Serve until SIGTERM, on the server class that the service's workers use."""
    listener = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    prepare(listener)
    server = HttpServer(Plaintext(body_bytes, like_a_list=like_a_list), listener, 16_384, 30.0)
    collect_garbage_seldom()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stop, 1.0)
    await server.serve()


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), like_a_list=sys.argv[3:] == ["headers"]))
