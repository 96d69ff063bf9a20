"""A worker that hangs is replaced; one that only had no time is not."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Server, running_server
from tests.support.waiting import pause, wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-supervision")]


def events(server: Server) -> list[dict[str, Any]]:
    """What the parent and the workers have told."""
    lines = [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] != "request"]


def test_a_stopped_worker_is_replaced(tmp_path: Path) -> None:
    """SIGSTOP, as good as a deadlock: after PETSTORE_WORKER_TIMEOUT another worker serves."""
    with running_server(tmp_path, worker_timeout="3s") as server:
        (first,) = server.workers()
        os.kill(first, signal.SIGSTOP)
        wait_for(lambda: server.workers() not in ([], [first]), "the next worker")
        assert server.request("GET", "/v1/pets").status == 200
        hung = [event for event in events(server) if event["event"] == "worker hung"]
        assert [(event["worker"], event["level"]) for event in hung if event["pid"] == first] == [
            (0, "warning")
        ]


def test_a_pause_of_all_kills_nobody(tmp_path: Path) -> None:
    """Parent and worker stand still for longer than the timeout, and go on as if nothing had been.

    Two seconds without a heartbeat are usual: one until the next, one that the parent counts of the pause.
    """
    with running_server(tmp_path, worker_timeout="5s") as server:
        (worker,) = server.workers()
        for number in (signal.SIGSTOP, signal.SIGCONT):
            os.kill(server.pid, number)
            if number == signal.SIGCONT:
                pause(0.3)  # the parent looks first, at the worst
            os.kill(worker, number)
            if number == signal.SIGSTOP:
                pause(6)
        pause(1.5)
        assert server.workers() == [worker]
        assert server.request("GET", "/v1/pets").status == 200
        assert "worker hung" not in server.log
