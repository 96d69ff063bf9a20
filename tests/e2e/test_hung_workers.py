"""A worker that hangs is replaced; one that only had no time is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
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
    with running_server(tmp_path, worker_timeout="2s") as server:
        (first,) = server.workers()
        os.kill(first, signal.SIGSTOP)
        wait_for(lambda: server.workers() not in ([], [first]), "the next worker")
        assert server.request("GET", "/v1/pets").status == 200
        (hung,) = [event for event in events(server) if event["event"] == "worker hung"]
        assert (hung["worker"], hung["pid"], hung["level"]) == (0, first, "warning")


def test_a_pause_of_all_kills_nobody(tmp_path: Path) -> None:
    """Parent and worker stand still for longer than the timeout, and go on as if nothing had been."""
    with running_server(tmp_path, worker_timeout="2s") as server:
        (worker,) = server.workers()
        for number in (signal.SIGSTOP, signal.SIGCONT):
            os.kill(server.pid, number)
            if number == signal.SIGCONT:
                pause(0.3)  # the parent looks first, at the worst
            os.kill(worker, number)
            if number == signal.SIGSTOP:
                pause(4)
        pause(1.5)
        assert server.workers() == [worker]
        assert server.request("GET", "/v1/pets").status == 200
        assert "worker hung" not in server.log


_BLOCKS = """
import asyncio, os, signal, sys, time
from petstore.core.clock import SystemClock
from petstore.ops import logs
from petstore.server.process import Timeouts
from petstore.server.supervisor import Supervisor

class Job:
    timeouts = Timeouts(1, 0.5)
    def work(self, number, report):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        first = not os.path.exists("first")
        open("first", "w").close()
        async def serve():
            report.ready()
            while True:
                report.heartbeat()
                await asyncio.sleep(0.1)
                if first:
                    time.sleep(60)  # on the event loop
        asyncio.run(serve())
    def before_stop(self): pass
    def observe(self, metrics): pass

logs.start_directly("info", "json")
Supervisor(Job(), count=1, overlap=False, hangup_stops=False,
           monotonic=SystemClock().monotonic).run()
"""


def test_a_blocked_event_loop_is_a_worker_that_hangs(tmp_path: Path) -> None:
    """The process runs, and nothing in it gets its turn."""
    log = tmp_path / "log"
    with log.open("wb") as output:
        parent = subprocess.Popen([sys.executable, "-c", _BLOCKS], cwd=tmp_path, stderr=output)
    try:
        wait_for(lambda: "worker ended" in log.read_text(), "the end of the one that hangs")
        pause(1.5)
        told = [json.loads(line)["event"] for line in log.read_text().splitlines()]
        assert told == ["ready", "worker hung", "worker ended"]
    finally:
        parent.terminate()
        assert parent.wait(10) == 0
