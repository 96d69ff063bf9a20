"""A worker: the application on an event loop of its own, behind granian, on a listener that it was given."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import granian.net
import uvloop
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from petstore.config import Settings
from petstore.core.clock import SystemClock
from petstore.server import listener as listeners
from petstore.server.binding import BACKLOG
from petstore.server.connections import Connections
from petstore.server.process import REPLACED, Report
from petstore.wiring.asgi import Application

_CUT_SHORT = 3  # the exit code of a worker that stopped without finishing everything
_BEAT_SECONDS = 1.0
_HEADER_TIMEOUT_MS = 10_000
# Larger than the application's own limit on the head, so that it can answer 431 with an Error body.
_HEAD_BUFFER_BYTES = 64 * 1024
# At a stop: how long an answer may wait without a byte of it being taken.
_PATIENCE_AT_STOP_SECONDS = 1.0
# After the deadline for bodies: the last ones are answered, and connections that were reset are closed.
_SETTLE_SECONDS = 0.5
# Nobody kills a worker whose parent was killed, and the next start waits three seconds for the port.
_ORPHAN_SECONDS, _ORPHAN_KILLED_SECONDS = 1.0, 5


class HttpServer(Server):
    """granian within our own process and loop, accepting from a socket that is open already.

    Signals, processes and the socket are ours: its own supervision can lock up when two signals meet.
    """

    def __init__(self, application: Any, listener: socket.socket, connections: int) -> None:
        self.listener = listener
        super().__init__(
            application,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=BACKLOG,
            backpressure=connections,
            http1_settings=HTTP1Settings(
                header_read_timeout=_HEADER_TIMEOUT_MS, max_buffer_size=_HEAD_BUFFER_BYTES
            ),
            log_enabled=False,
        )

    def _init_shared_socket(self) -> None:
        holder: Any = vars(granian.net)["SocketHolder"]  # its type stub does not know the arguments
        self._ssp: Any = None
        self._shd = holder(self.listener.fileno(), False, BACKLOG)


def run(
    settings: Settings,
    number: int,
    counts_directory: Path | None,
    server: Callable[[Application], HttpServer],
    report: Report,
) -> int:
    """Serve as worker `number` until SIGTERM, SIGINT or REPLACED; the process's exit code.

    Reports as soon as it serves. The signals are blocked when this is called, and heeded from the first turn
    of the loop on.
    """
    loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    application = Application(settings, counts_directory=counts_directory, worker=number)
    # Never closed: a signal that comes after its end would find no handler and change the exit code.
    return loop.run_until_complete(Worker(application, server(application), settings, report).serve())


def collect_garbage_seldom() -> None:
    """Requests leave hardly any cycles behind: look for them seldom, and not among what was there before."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


class Worker:
    """One application from its start to its stop."""

    def __init__(
        self, application: Application, server: HttpServer, settings: Settings, report: Report
    ) -> None:
        self._application = application
        self._server = server
        self._pause_seconds = settings.drain_ms / 1_000
        self._finish_seconds = settings.body_timeout_ms / 1_000 + _SETTLE_SECONDS
        self._connections = Connections(
            server.listener, settings.answer_timeout_ms / 1_000, SystemClock().monotonic
        )
        self._report = report
        self._is_replaced = True
        self._is_orphan = False
        self._parent = os.getppid()
        self._told_to_stop = asyncio.Event()
        self._told_to_hurry = asyncio.Event()

    async def serve(self) -> int:
        self._heed_signals()
        if not await self._application.try_to_start():
            return 1
        collect_garbage_seldom()
        serving = asyncio.create_task(self._server.serve())
        watching = asyncio.create_task(self._connections.watch())
        self._report.ready()
        self._beat()
        await _first_of(self._told_to_stop.wait(), serving)
        is_finished = serving.done()
        if not is_finished:
            await self._drain()
            self._server.stop()  # type: ignore[no-untyped-call]
            is_finished = await self._finish(serving)
        watching.cancel()
        await self._application.stop()
        if not self._told_to_stop.is_set() or (serving.done() and serving.exception() is not None):
            return 1
        return 0 if is_finished else _CUT_SHORT

    def _beat(self) -> None:
        """For as long as the loop turns."""
        self._report.alive()
        asyncio.get_running_loop().call_later(_BEAT_SECONDS, self._beat)

    def _heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(REPLACED, self._told_to_stop.set)
        loop.add_signal_handler(signal.SIGTERM, self._stop)
        loop.add_signal_handler(signal.SIGINT, self._hurry)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT, REPLACED})

    def _stop(self) -> None:
        self._is_replaced = False
        if os.getppid() != self._parent:  # it was killed, and whoever starts it again needs the port
            self._is_orphan = True
            signal.alarm(_ORPHAN_KILLED_SECONDS)
            # Open until the process ends: were the port free before the database, a start would fail.
            os.dup(self._server.listener.fileno())
            self._told_to_hurry.set()
        self._told_to_stop.set()

    def _hurry(self) -> None:
        self._told_to_hurry.set()
        self._stop()

    async def _drain(self) -> None:
        """Refuse to be ready, and close each connection after its answer, so that others take over.

        At the end nobody new is let in, while those who came already are still answered.
        """
        self._application.begin_drain()
        if not self._pause_seconds or await self._hurried_within(self._pause_seconds):
            return
        if self._is_replaced:
            listeners.leave_to_others(self._server.listener)
        else:
            listeners.turn_newcomers_away(self._server.listener)
        await self._hurried_within(listeners.SETTLE_SECONDS)

    async def _finish(self, serving: asyncio.Task[None]) -> bool:
        """Let the requests that were accepted end, in time; False when connections had to be cut off."""
        ended_before = self._connections.ended
        self._connections.lose_patience(_PATIENCE_AT_STOP_SECONDS)
        await asyncio.wait([serving], timeout=_ORPHAN_SECONDS if self._is_orphan else self._finish_seconds)
        if not serving.done():
            self._connections.end_all()
            await asyncio.wait([serving], timeout=_SETTLE_SECONDS)
        return serving.done() and self._connections.ended == ended_before

    async def _hurried_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(self._told_to_hurry.wait(), seconds)
        return False


async def _first_of(waiting: Any, task: asyncio.Task[None]) -> None:
    other = asyncio.ensure_future(waiting)
    await asyncio.wait({other, task}, return_when=asyncio.FIRST_COMPLETED)
    other.cancel()
