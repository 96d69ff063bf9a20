"""The ceiling: the least that an ASGI application can do on the same HTTP server with the same settings.

python -m verification.benchmarks.ceiling PORT BODY_BYTES [headers], the last word for the headers of a list.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from typing import Any

import uvloop

from petstore.api.pipeline.response import Header, make_response, response_headers
from petstore.core.clock import SystemClock
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.quota import decide
from petstore.core.limits.windows import AccountWindows
from petstore.server.binding import BACKLOG
from petstore.server.listener import prepare
from petstore.server.worker import HttpServer, collect_garbage_seldom


class Plaintext:
    """Answers every request with the same bytes: two headers, or those of a list, made once."""

    def __init__(self, size: int, *, like_a_list: bool = False) -> None:
        body = b"x" * size
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % size)]
        if like_a_list:
            headers = _headers_of_a_list(body)
        self._body = {"type": "http.response.body", "body": body}
        self._start = {"type": "http.response.start", "status": 200, "headers": headers}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send(self._start)
        await send(self._body)


def _headers_of_a_list(body: bytes) -> list[Header]:
    links = b'</v1/pets?limit=20&status=available&cursor=AAAAAAAAAAAA>; rel="next", '
    response = make_response(
        200, body, (b"link", links + b'</v1/pets?limit=20&status=available>; rel="first"')
    )
    caller = Caller(1, 1, (1_000_000_000, 1_000_000_000))
    decision = decide(AccountWindows(), None, caller, BanPolicy(), SystemClock().now_ms())
    return response_headers(response, decision, b"0123456789ab-1000")


async def serve(port: int, body_bytes: int, *, like_a_list: bool) -> None:
    """Until SIGTERM, on the same server class that the service's workers use."""
    listener = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    prepare(listener)
    server = HttpServer(Plaintext(body_bytes, like_a_list=like_a_list), listener, 16_384)
    collect_garbage_seldom()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stop)
    await server.serve()


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), like_a_list=sys.argv[3:] == ["headers"]))
