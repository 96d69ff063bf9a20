"""A program on this machine that gets webhooks, and keeps what it gets."""

from __future__ import annotations

from contextlib import AbstractContextManager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.loops import answering


class Receiver(ThreadingHTTPServer):
    """Answers 204 at `address`, else 404. `got`: headers and bodies, in their order."""

    def __init__(self, port: int = 0) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?of=shop"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))
        self.send_response(204 if self.path == "/hook?of=shop" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


def receiving(port: int = 0) -> AbstractContextManager[Receiver]:
    """A receiver for the length of a block."""
    return answering(Receiver(port))
