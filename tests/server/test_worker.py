"""A worker in the test's own process: the end of one whose HTTP server fails."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from structlog.testing import capture_logs

from petstore import config
from petstore.server import worker
from petstore.server.process import Report


class Application:
    """Notes its stop."""

    def __init__(self) -> None:
        self.stopped = False

    async def try_to_start(self) -> bool:
        return True

    async def stop(self) -> None:
        self.stopped = True


class FailingServer:
    """An HTTP server that ends at once, by an exception."""

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener

    async def serve(self) -> None:
        raise RuntimeError("no thread left")


async def test_the_log_says_why_the_http_server_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 1, the cause is logged, and the application is stopped: its counters are saved."""
    monkeypatch.setattr(worker, "collect_garbage_seldom", lambda: None)
    application: Any = Application()
    parent, pipe = socket.socketpair()
    with parent, pipe, socket.create_server(("127.0.0.1", 0)) as listener:
        server: Any = FailingServer(listener)
        serving = worker.Worker(application, server, config.load({}), Report(pipe.fileno()))
        with capture_logs() as lines:
            assert await serving.serve() == 1
    assert application.stopped
    assert [(line["event"], str(line["exc_info"])) for line in lines] == [("worker failed", "no thread left")]
