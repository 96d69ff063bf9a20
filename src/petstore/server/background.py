"""The background process: jobs on an event loop of its own, at the lowest priority."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import structlog

from petstore.config import Settings
from petstore.core.errors import OperatorError, PetstoreError
from petstore.server.loop import Loop
from petstore.server.process import STOP_SIGNALS, ReportPipe
from petstore.server.worker import ORPHAN_KILLED_SECONDS, collect_garbage_seldom, send_heartbeats

_NICENESS = 19  # requests go first

_log = structlog.get_logger("petstore.jobs")


def run(settings: Settings, metrics_directory: Path | None, report: ReportPipe) -> int:
    """Carry out jobs until a signal to stop; returns the exit code. The signals are blocked before."""
    os.nice(_NICENESS)
    collect_garbage_seldom()
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(_run(settings, metrics_directory, report))


async def _run(settings: Settings, metrics_directory: Path | None, report: ReportPipe) -> int:
    # Not above: at its import aiohttp reads the machine's certificates, and the first workers would wait.
    from petstore.wiring.jobs import carry_out_jobs

    parent, loop = os.getppid(), asyncio.get_running_loop()
    working = asyncio.create_task(carry_out_jobs(settings, metrics_directory, report.ready))

    def stop() -> None:
        if os.getppid() != parent:  # the next service needs the database
            signal.alarm(ORPHAN_KILLED_SECONDS)
        working.cancel()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
    send_heartbeats(report)
    try:
        await working
    except asyncio.CancelledError:
        return 0
    except (OperatorError, PetstoreError) as error:
        _log.error("background failed", reason=str(error), message=f"No jobs are carried out: {error}")
    return 1
