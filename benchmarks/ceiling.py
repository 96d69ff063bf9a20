"""The ceiling: the least that an ASGI application can do on the same HTTP server with the same settings."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from typing import Any

import uvloop

from petstore.serving.worker import BACKLOG, HttpServer, collect_garbage_seldom


class Plaintext:
    """Answers every request with the same bytes and two headers."""

    def __init__(self, size: int) -> None:
        self._body = {"type": "http.response.body", "body": b"x" * size}
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % size)]
        self._start = {"type": "http.response.start", "status": 200, "headers": headers}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send(self._start)
        await send(self._body)


async def serve(port: int, body_bytes: int) -> None:
    """Until SIGTERM, on the same server class that the service's workers use."""
    listener = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    listener.setblocking(False)
    server = HttpServer(Plaintext(body_bytes), listener, 16_384)
    collect_garbage_seldom()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, server.stop)
    await server.serve()


if __name__ == "__main__":
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
