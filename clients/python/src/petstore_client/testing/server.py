"""The fake over HTTP, for programs in other languages."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from petstore_client.testing.messages import Answer, NoAnswer, encode

Answers = Callable[[str, str, Iterable[tuple[str, str]], bytes], Answer]


class _Server(ThreadingHTTPServer):
    """Ends its connections with itself."""

    def __init__(self, answers: Answers) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = answers
        self.connections = set[socket.socket]()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_any(self) -> None:
        target = self.requestline.split()[1]  # `path` has lost a slash of "//v1/pets"
        try:
            answer = self.server.answers(self.command, target, self.headers.items(), self._content())
        except NoAnswer as lost:
            self.close_connection = True
            if lost.slow:  # until the client closes the connection, or the server does
                select.select([self.connection], [], [])
            return
        except NotImplementedError as error:
            content = encode({"code": "not_implemented", "message": str(error), "status": 501})
            headers = {"content-type": "application/json", "content-length": str(len(content))}
            answer = Answer(501, headers, content)
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.content)

    def _content(self) -> bytes:
        """The body, which may come in chunks, as Node.js writes one of unknown length."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            """A trailer."""
        return b"".join(pieces)

    def __getattr__(self, name: str) -> Any:
        """Any method is a request: the service refuses those that it does not know."""
        if name.startswith("do_"):
            return self.do_any
        raise AttributeError(name)

    def log_message(self, *args: object) -> None:
        """Nothing."""


@contextmanager
def served(answers: Answers) -> Iterator[str]:
    """The address of a server for the length of the block."""
    with _Server(answers) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            for connection in list(server.connections):
                with suppress(OSError):  # it has just ended
                    connection.shutdown(socket.SHUT_RDWR)
