"""nginx with the files under deploy/nginx, before replicas that answer, wait, end early, or are not there."""

from __future__ import annotations

import http.client
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.support import machine
from tests.support.server import Response
from tests.support.waiting import wait_for
from tools.servers.child import status_of
from tools.servers.nginx import Nginx
from tools.servers.ports import free_port, is_free

_PATIENCE_SECONDS = 20.0


class Replica(socketserver.ThreadingTCPServer):
    """Counts what it is sent. While `answers` is cleared it keeps everybody waiting. `ends_early`: then it
    closes instead of answering."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ends_early = False
        self.answers = threading.Event()
        self.answers.set()
        self.seen: list[tuple[str, str, dict[str, str], int]] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, *_: Any) -> None:
        """A client that has gone is none of a test's business."""

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Replica

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.command, self.path, headers, len(body)))
        self.server.answers.wait(_PATIENCE_SECONDS)
        if self.server.ends_early:
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("X-Request-Id", "the-id")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PATCH = do_DELETE = _answer  # noqa: N815  http.server's names

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class Front:
    """nginx, its access log, and the replicas behind it."""

    def __init__(self, port: int, replicas: list[Replica], log: Path) -> None:
        self.port = port
        self.replicas = replicas
        self.log = log

    @property
    def seen(self) -> list[tuple[str, str, dict[str, str], int]]:
        return [each for replica in self.replicas for each in replica.seen]

    def ask(
        self, method: str, target: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Response:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, target, body, headers or {})
            answer = connection.getresponse()
            return Response(answer, answer.read())
        finally:
            connection.close()


@contextmanager
def nginx_before(ports: tuple[int, int]) -> Iterator[Nginx]:
    """nginx with deploy/nginx/nginx.conf before these ports."""
    program = machine.program("nginx")
    with machine.folder() as path:
        nginx = Nginx(program, path, free_port(), ports)
        nginx.launch()
        wait_for(lambda: not is_free(nginx.port), "nginx")
        try:
            yield nginx
        finally:
            nginx.stop()


@contextmanager
def running_front() -> Iterator[Front]:
    """nginx before two replicas that answer."""
    replicas = [Replica(), Replica()]
    try:
        with nginx_before((replicas[0].port, replicas[1].port)) as nginx:
            # nginx may count a request for a moment after its answer, but never one that it refuses itself.
            wait_for(lambda: status_of(nginx.port, "/metrics") == 404, "an answer of nginx")
            yield Front(nginx.port, replicas, nginx.access_log)
    finally:
        for replica in replicas:
            replica.answers.set()
            replica.close()
