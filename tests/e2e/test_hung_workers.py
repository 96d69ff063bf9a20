"""A worker that only had no time is not replaced; test_notify.py has one that hangs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.server import running_server
from tests.support.waiting import pause

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-supervision")]


def test_a_pause_of_all_kills_nobody(tmp_path: Path) -> None:
    """Parent and worker stand still for longer than the timeout, and go on as if nothing had been.

    Two seconds without a heartbeat are usual: one until the next, one that the parent counts of the pause.
    """
    with running_server(tmp_path, worker_timeout="12s") as server:
        (worker,) = server.workers()
        for number in (signal.SIGSTOP, signal.SIGCONT):
            os.kill(server.pid, number)
            if number == signal.SIGCONT:
                pause(0.3)  # the parent looks first, at the worst
            os.kill(worker, number)
            if number == signal.SIGSTOP:
                pause(13)
        pause(1.5)
        assert server.workers() == [worker]
        assert server.request("GET", "/v1/pets").status == 200
        assert "worker hung" not in server.log
