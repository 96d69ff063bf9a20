"""A worker in the test's own process: how it ends."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from petstore import config
from petstore.api.openapi.document import documented_messages
from petstore.core.limits.counters import LimiterState
from petstore.server import listener as listeners
from petstore.server import worker
from petstore.server.process import REPLACED, ReportPipe
from petstore.storage.sqlite.counters import SqliteCounters
from petstore.wiring import service
from petstore.wiring.service import build


class Application:
    """Notes its stop."""

    def __init__(self) -> None:
        self.stopped = False
        self.service = SimpleNamespace(count_connections=lambda _: None)

    async def try_to_start(self) -> bool:
        return True

    def begin_drain(self) -> None:
        pass

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
        serving = worker.Worker(application, server, config.load({}), ReportPipe(pipe.fileno()))
        with capture_logs() as lines:
            assert await serving.serve() == 1
    assert application.stopped
    assert [(line["event"], str(line["exc_info"])) for line in lines] == [("worker failed", "no thread left")]


class AcceptingServer:
    """An HTTP server that notes whom it accepted. `late` connects when it stops, or accepts no more."""

    ended = 0
    has_left = False
    newcomers = 0  # how often it still has some
    looks = 0

    def __init__(self, listener: socket.socket, late: socket.socket | None = None) -> None:
        self.listener = listener
        self.accepted: list[object] = []
        self.is_late_let_in: bool | None = None
        self._late = late
        self._has_stopped = asyncio.Event()

    async def serve(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(self.listener, self._accept)
        await self._has_stopped.wait()
        loop.remove_reader(self.listener)

    def drain(self) -> None:
        pass

    def stop_accepting(self) -> None:
        assert self._late is not None
        self.has_left = True
        asyncio.get_running_loop().remove_reader(self.listener)
        self._late.connect(self.listener.getsockname())

    @property
    def has_newcomers(self) -> bool:
        self.looks += 1
        self.newcomers -= 1
        return self.newcomers >= 0

    def stop(self, answer_timeout_seconds: float) -> None:
        if self._late is not None:
            self._late.setblocking(False)
            self._late.connect_ex(self.listener.getsockname())
            self.is_late_let_in = bool(select.select([], [self._late], [], 0.1)[1])
        self._has_stopped.set()

    def end_all(self) -> None:
        self.ended += 1
        self._has_stopped.set()

    def _accept(self) -> None:
        connection, address = self.listener.accept()
        connection.close()
        self.accepted.append(address)


class TestStop:
    """No connection is accepted and then reset: a client of the last moment is answered or not let in."""

    async def test_who_came_before_the_refusal_is_accepted_and_nobody_after_it(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The HTTP server runs on for a while after new connections are refused, and only then stops."""
        with (
            socket.socket() as last,
            socket.socket() as late,
            socket.create_server(("127.0.0.1", 0)) as listener,
        ):
            refuse = listeners.refuse_connections

            def connect_and_refuse(listener: socket.socket) -> None:
                last.connect(listener.getsockname())
                refuse(listener)

            monkeypatch.setattr(listeners, "refuse_connections", connect_and_refuse)
            server = AcceptingServer(listener, late)
            await serve_until(signal.SIGTERM, server, monkeypatch)
            assert server.accepted == [last.getsockname()]
            assert server.is_late_let_in is False

    async def test_after_a_replacement_the_successor_accepts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The processes share the listener: who comes while the old worker ends waits for the new one."""
        with (
            socket.socket() as client,
            socket.create_server(("127.0.0.1", 0)) as listener,
            listener.dup() as shared,
        ):
            server = AcceptingServer(listener, client)
            await serve_until(REPLACED, server, monkeypatch)
            assert server.has_left
            assert server.accepted == []
            shared.setblocking(False)
            connection, address = await asyncio.get_running_loop().sock_accept(shared)
            connection.close()
            assert address == client.getsockname()

    @pytest.mark.parametrize(("newcomers", "looks"), [(0, 1), (2, 3), (1_000, 10)])
    async def test_a_replaced_worker_waits_for_first_requests_alone(
        self, monkeypatch: pytest.MonkeyPatch, newcomers: int, looks: int
    ) -> None:
        """Nobody is served meanwhile where there is no overlap. Who sends nothing holds it up no longer than
        a stop."""
        with socket.socket() as client, socket.create_server(("127.0.0.1", 0)) as listener:
            server = AcceptingServer(listener, client)
            server.newcomers = newcomers
            await serve_until(REPLACED, server, monkeypatch)
            assert server.looks == looks


class StalledServer(AcceptingServer):
    """A server with a connection that ends only when it is cut off."""

    at_stop: signal.Signals | None = None  # arrives while the worker finishes
    is_finishing = False

    def stop_accepting(self) -> None:
        pass

    def stop(self, answer_timeout_seconds: float) -> None:
        self.is_finishing = True
        if self.at_stop is not None:
            os.kill(os.getpid(), self.at_stop)


@pytest.mark.parametrize(
    ("number", "at_stop", "seconds"),
    [
        (signal.SIGTERM, None, 6.501),
        (signal.SIGINT, None, 6.5),
        (REPLACED, signal.SIGTERM, 6.501),
    ],
)
async def test_a_stop_cuts_off_what_is_still_arriving(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, at_stop: signal.Signals | None, seconds: float
) -> None:
    """I16: some seconds after the signal and the drain, also where a worker ends for a successor already."""
    cut: list[float] = []
    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def note(delay: float, callback: Any, *given: Any) -> asyncio.Handle:
        if getattr(callback, "__func__", None) is not StalledServer.end_all:
            return call_later(delay, callback, *given)
        cut.append(delay)
        return loop.call_soon(end_once_it_finishes)

    def end_once_it_finishes() -> None:
        loop.call_soon(server.end_all if server.is_finishing else end_once_it_finishes)

    monkeypatch.setattr(loop, "call_later", note)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = StalledServer(listener)
        server.at_stop = at_stop
        await serve_until(number, server, monkeypatch, "1s", worker._CUT_SHORT)
    assert cut == [pytest.approx(seconds)]


async def test_a_replacement_waits_for_bodies_as_long_as_they_may_take(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reload cuts no slow upload off."""
    waited: list[float] = []
    wait = asyncio.wait

    async def note(tasks: Any, **options: Any) -> None:
        if "timeout" in options:
            waited.append(options["timeout"])
            options["timeout"] = 0
        await wait(tasks, **options)

    monkeypatch.setattr(worker, "asyncio", SimpleNamespace(**{**vars(asyncio), "wait": note}))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await serve_until(REPLACED, StalledServer(listener), monkeypatch, "60s", worker._CUT_SHORT)
    assert waited[0] == 61.5


async def test_a_replaced_worker_that_loses_its_parent_cuts_its_clients_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A start waits three seconds for the port, which the worker that follows this one holds meanwhile."""
    monkeypatch.setattr(worker, "collect_garbage_seldom", lambda: None)
    monkeypatch.setattr(worker, "_ORPHAN_SECONDS", 0.0123)
    delays: list[float] = []
    call_later = asyncio.get_running_loop().call_later

    def note(delay: float, *what: Any) -> asyncio.TimerHandle:
        delays.append(delay)
        return call_later(delay, *what)

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", note)
    alarms: list[int] = []
    monkeypatch.setattr(signal, "alarm", alarms.append)
    has_ended = asyncio.Event()

    class OrphanedServer(StalledServer):
        def stop_accepting(self) -> None:
            self.has_left = True
            self.listener.close()

        def stop(self, answer_timeout_seconds: float) -> None:
            asyncio.get_running_loop().call_soon(self._lose_parent)

        def _lose_parent(self) -> None:
            monkeypatch.setattr(os, "getppid", lambda: 1)
            os.kill(os.getpid(), signal.SIGTERM)

        def end_all(self) -> None:
            has_ended.set()
            super().end_all()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        application: Any = Application()
        server: Any = OrphanedServer(listener)
        settings = config.load({"PETSTORE_BODY_TIMEOUT": "1s", "PETSTORE_DRAIN": "1ms"})
        parent, pipe = socket.socketpair()
        with parent, pipe:
            serving = worker.Worker(application, server, settings, ReportPipe(pipe.fileno()))
            ending = asyncio.create_task(serving.serve())
            asyncio.get_running_loop().call_soon(os.kill, os.getpid(), REPLACED)
            await has_ended.wait()
            assert await ending == worker._CUT_SHORT
    assert server.has_left
    assert 0.0123 in delays
    assert alarms == [worker.ORPHAN_KILLED_SECONDS]
    assert application.stopped


async def test_a_worker_stopped_before_its_predecessor_ends_does_not_drain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would drain after the worker that it follows, and a stop would take twice as long."""
    application: Any = Application()

    async def wait_and_start() -> bool:
        report.await_predecessor()
        os.kill(os.getpid(), signal.SIGTERM)
        return True

    monkeypatch.setattr(application, "try_to_start", wait_and_start)
    before, ended = socket.socketpair()
    report = ReportPipe(-1)
    report.follow(before.detach())
    ended.close()
    server: Any = SimpleNamespace(end_all=lambda: None)
    serving = worker.Worker(application, server, config.load({}), report)
    assert await serving.serve() == 0
    assert application.stopped


async def test_the_counters_alone_are_read_after_the_predecessor_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker before saves them with its last step. When it has ended, connections wait: all else is made
    before, such as what staging documents, which takes 0.1 s to read."""
    documented_messages.cache_clear()
    order: list[object] = []
    make, load = service._build_service, SqliteCounters.load

    def made(*parts: Any) -> service.Service:
        order.append("made")
        return make(*parts)

    async def loaded(counters: SqliteCounters, *times: int) -> LimiterState:
        order.append("counters")
        return await load(counters, *times)

    monkeypatch.setattr(service, "_build_service", made)
    monkeypatch.setattr(SqliteCounters, "load", loaded)
    url = f"sqlite:///{tmp_path}/petstore.db"
    settings = config.load({"PETSTORE_DATABASE_URL": url, "PETSTORE_STAGE": "staging"})
    found = await build(
        settings, await_predecessor=lambda: order.append(documented_messages.cache_info().currsize)
    )
    await found.stop()
    assert order == ["made", 1, "counters"]


async def serve_until(
    number: signal.Signals,
    server: AcceptingServer,
    monkeypatch: pytest.MonkeyPatch,
    body_timeout: str = "10s",
    code: int = 0,
) -> None:
    """A worker with `server`, stopped by a signal, exits with `code`."""
    monkeypatch.setattr(worker, "collect_garbage_seldom", lambda: None)
    application: Any = Application()
    http_server: Any = server
    listeners.prepare(server.listener)
    parent, pipe = socket.socketpair()
    with parent, pipe:
        settings = config.load({"PETSTORE_DRAIN": "1ms", "PETSTORE_BODY_TIMEOUT": body_timeout})
        serving = worker.Worker(application, http_server, settings, ReportPipe(pipe.fileno()))
        asyncio.get_running_loop().call_later(0, os.kill, os.getpid(), number)
        assert await serving.serve() == code
