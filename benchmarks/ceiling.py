"""The ceiling: the least that an ASGI application can do on the same HTTP server with the same settings."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from granian import Granian

from petstore.cli.serve import granian_options


class Plaintext:
    """Answers every request with the same bytes and two headers."""

    def __init__(self, size: int) -> None:
        self._body = {"type": "http.response.body", "body": b"x" * size}
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % size)]
        self._start = {"type": "http.response.start", "status": 200, "headers": headers}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (message := await receive())["type"] != "lifespan.shutdown":
                await send({"type": f"{message['type']}.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send(self._start)
        await send(self._body)


if __name__ == "__main__":
    port, body_bytes = int(sys.argv[1]), int(sys.argv[2])
    server = Granian("benchmarks.ceiling", address="127.0.0.1", port=port, **granian_options())
    server.serve(target_loader=partial(Plaintext, body_bytes), wrap_loader=False)
