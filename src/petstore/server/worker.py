"""A worker: the application behind the HTTP server, on its own event loop and the parent's listener."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import structlog

from petstore.config import Settings
from petstore.http.connection import LINGER_SECONDS
from petstore.http.server import HttpServer
from petstore.server import listener as listeners
from petstore.server.loop import Loop
from petstore.server.process import FINISH_SECONDS_MAX, REPLACED, STOP_SIGNALS, ReportPipe
from petstore.wiring.application import Application

_CUT_SHORT = 3  # the exit code after a stop that cut responses off
_HEARTBEAT_SECONDS = 1.0
# A thread makes pages beside the event loop, and a request waits this long for its turn. With Python's 5 ms
# the p99 of lists beside the first readers of the documentation is twice as high; 0.5 ms cost additions 3 %.
_SWITCH_SECONDS = 0.001
_CHECKS = 10  # for connections that have sent no request yet
# At a stop: how long a response may make no progress.
_ANSWER_TIMEOUT_AT_STOP_SECONDS = 1.0
# After the body timeout: for the last responses, and until the reset connections have ended.
_SETTLE_SECONDS = 0.5
# No parent kills an orphan, and the next start waits three seconds for the port.
_ORPHAN_SECONDS, ORPHAN_KILLED_SECONDS = 1.0, 5

_log = structlog.get_logger("petstore.worker")


def run(
    settings: Settings,
    number: int,
    metrics_directory: Path | None,
    server: Callable[[Application], HttpServer],
    report: ReportPipe,
) -> int:
    """Serve as worker `number` until SIGTERM, SIGINT or REPLACED; returns the exit code.

    These signals are blocked when this is called, and unblocked once the loop runs.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    loop = Loop()
    asyncio.set_event_loop(loop)
    application = Application(
        settings,
        metrics_directory=metrics_directory,
        worker=number,
        await_predecessor=report.await_predecessor,
    )
    # Never closed: a late signal would find no handler and change the exit code.
    return loop.run_until_complete(Worker(application, server(application), settings, report).serve())


def collect_garbage_seldom() -> None:
    """Requests create hardly any cycles: collect seldom, and never the objects of the start."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


def send_heartbeats(report: ReportPipe) -> None:
    """Send one now, and then one a second for as long as the event loop runs."""
    report.heartbeat()
    asyncio.get_running_loop().call_later(_HEARTBEAT_SECONDS, send_heartbeats, report)


class Worker:
    def __init__(
        self, application: Application, server: HttpServer, settings: Settings, report: ReportPipe
    ) -> None:
        self._application = application
        self._server = server
        self._drain_seconds = settings.drain_ms / 1_000
        self._body_seconds = settings.body_timeout_ms / 1_000
        self._report = report
        self._is_replaced = True
        self._parent = os.getppid()
        self._should_stop = asyncio.Event()
        self._should_skip_drain = asyncio.Event()

    async def serve(self) -> int:
        """Serve until a signal to stop; returns the exit code."""
        self._add_signal_handlers()
        if not await self._application.try_to_start():
            return 1
        if self._report.has_waited and await self._is_stopped():
            await self._application.stop()
            return 0
        self._application.service.count_connections(self._server)
        collect_garbage_seldom()
        serving = asyncio.create_task(self._server.serve())
        await asyncio.sleep(0)  # until it accepts
        self._report.ready()
        send_heartbeats(self._report)
        stopping = asyncio.create_task(self._should_stop.wait())
        await asyncio.wait({stopping, serving}, return_when=asyncio.FIRST_COMPLETED)
        is_finished = serving.done()
        if not is_finished:
            await self._drain()
            is_finished = await self._finish(serving)
        stopping.cancel()
        if has_failed := serving.done() and serving.exception() is not None:
            _log.critical("worker failed", exc_info=serving.exception())
        await self._application.stop()
        if has_failed or not self._should_stop.is_set():
            return 1
        return 0 if is_finished else _CUT_SHORT

    def _add_signal_handlers(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(REPLACED, self._should_stop.set)
        loop.add_signal_handler(signal.SIGTERM, self._stop)
        loop.add_signal_handler(signal.SIGINT, self._stop_without_drain)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    async def _is_stopped(self) -> bool:
        """Whether a signal to stop came while the loop stood still. There are no clients yet."""
        for _ in range(3):  # reading a signal is one turn of the loop, its handler the next
            await asyncio.sleep(0)
        return self._should_stop.is_set()

    @property
    def _is_orphan(self) -> bool:
        return os.getppid() != self._parent

    def _stop(self) -> None:
        self._is_replaced = False
        drain_seconds = 0 if self._should_skip_drain.is_set() else self._drain_seconds
        cut_seconds = drain_seconds + FINISH_SECONDS_MAX + LINGER_SECONDS + _SETTLE_SECONDS
        if self._is_orphan:  # the next service needs the port and the database
            signal.alarm(ORPHAN_KILLED_SECONDS)
            if (port := self._server.listener.fileno()) >= 0:  # a replaced worker has closed it
                # Kept until the process ends: a start that finds it free must find the database free.
                os.dup(port)
            self._should_skip_drain.set()
            cut_seconds = _ORPHAN_SECONDS
        # Here and not where it finishes: it may do so already, for a successor.
        asyncio.get_running_loop().call_later(cut_seconds, self._server.end_all)
        self._should_stop.set()

    def _stop_without_drain(self) -> None:
        self._should_skip_drain.set()
        self._stop()

    async def _drain(self) -> None:
        """Fail /readyz and close each connection after its response, so that clients go elsewhere.

        At the end new connections are refused, while accepted ones are still served.
        """
        self._application.begin_drain()
        self._server.drain()
        if not self._drain_seconds or await self._is_drain_skipped(self._drain_seconds):
            return
        if self._is_replaced:
            self._server.stop_accepting()
            await self._hear_newcomers()
        else:
            listeners.refuse_connections(self._server.listener)
            await self._is_drain_skipped(listeners.SETTLE_SECONDS)

    async def _hear_newcomers(self) -> None:
        """Wait for the first requests, as long as a stop does; without overlap nobody accepts meanwhile."""
        for _ in range(_CHECKS):
            if await self._is_drain_skipped(listeners.SETTLE_SECONDS / _CHECKS):
                return
            if not self._server.has_newcomers:
                return

    async def _finish(self, serving: asyncio.Task[None]) -> bool:
        """Wait for the accepted requests; False when connections had to be reset."""
        ended_before = self._server.ended
        self._server.stop(_ANSWER_TIMEOUT_AT_STOP_SECONDS)
        await asyncio.wait([serving], timeout=self._body_seconds + LINGER_SECONDS + _SETTLE_SECONDS)
        if not serving.done():
            self._server.end_all()
            await asyncio.wait([serving], timeout=_SETTLE_SECONDS)
        return serving.done() and self._server.ended == ended_before

    async def _is_drain_skipped(self, seconds: float) -> bool:
        """Wait; True as soon as the drain is to be skipped."""
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(self._should_skip_drain.wait(), seconds)
        return False
