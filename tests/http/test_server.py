"""The server on a port of loopback: how many connections it has, and how they end."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from contextlib import ExitStack

import pytest
from structlog.testing import capture_logs

from petstore.http.exchange import Exchange
from petstore.http.server import HttpServer
from tests.http.kit import Later, echo, get, ok, post, serving
from tests.support.waiting import PATIENCE_SECONDS, until

LARGE = 8 * 1024 * 1024  # more than the kernel's buffers hold


def large(exchange: Exchange) -> None:
    exchange.answer(200, b"", b"x" * LARGE)


class TestBound:
    """`connections` are open at most; further clients wait in the backlog."""

    async def test_the_next_is_accepted_when_one_leaves(self) -> None:
        """Whether it came alone or with many others."""
        async with serving(connections=2) as service:
            with ExitStack() as stack:
                clients = [stack.enter_context(socket.create_connection(service.address)) for _ in range(9)]
                for client in clients:
                    client.setblocking(False)
                    client.send(get(b"/1"))
                loop = asyncio.get_running_loop()
                waiting = {asyncio.create_task(loop.sock_recv(client, 1_000)): client for client in clients}
                answered = 0
                while waiting:
                    done, _ = await asyncio.wait(
                        waiting, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                    )
                    assert done, "the others wait in vain"
                    answered += len(done)
                    assert len(service.server) <= 2
                    for task in done:
                        assert task.result() == ok(b"/1")
                        waiting.pop(task).close()
                assert answered == 9

    async def test_it_accepts_again_after_a_lack_of_descriptors(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """When the next connection ends."""
        async with serving(connections=2) as service:
            async with await service.connect() as first:
                async with await service.connect():
                    await until(lambda: len(service.server) == 2)
                    listener = service.server.listener
                    monkeypatch.setattr(service.server, "listener", Exhausted())
                await until(lambda: len(service.server) == 1)
                await asyncio.sleep(0)
                monkeypatch.setattr(service.server, "listener", listener)
                assert await first.ask(get(b"/1")) == ok(b"/1")
            async with await service.connect() as third:
                assert await third.ask(get(b"/3")) == ok(b"/3")


async def next_check(server: HttpServer) -> None:
    """Wait until the server has looked at its connections once more."""
    last = server.now
    await until(lambda: server.now > last)


class Exhausted:
    """A listener in a process that has no free descriptor."""

    def dup(self) -> socket.socket:
        raise OSError(errno.EMFILE, "Too many open files")


class TestStop:
    """How a worker ends."""

    async def test_a_draining_server_closes_each_connection_after_its_answer(self) -> None:
        """New ones are served so as well."""
        async with serving() as service, await service.connect() as old:
            assert await old.ask(get(b"/1")) == ok(b"/1")
            service.server.drain()
            assert await old.ask(get(b"/2")) == ok(b"/2", closes=True)
            assert await old.reader.read() == b""
            async with await service.connect() as new:
                assert await new.ask(get(b"/3")) == ok(b"/3", closes=True)

    async def test_a_server_that_accepts_no_more_serves_open_connections(self) -> None:
        """New ones wait for a process that shares the listener."""
        async with serving() as service, await service.connect() as old:
            assert await old.ask(get(b"/1")) == ok(b"/1")
            shared = service.server.listener.dup()
            service.server.stop_accepting()
            async with await service.connect() as new:
                asking = asyncio.create_task(new.ask(get(b"/2")))
                assert await old.ask(get(b"/1")) == ok(b"/1")
                assert len(service.server) == 1
                successor = HttpServer(echo, shared, 16, 60.0)
                serve = asyncio.create_task(successor.serve())
                assert await asking == ok(b"/2")
                successor.stop(1.0)
                await serve

    async def test_a_server_knows_connections_that_have_sent_no_request(self) -> None:
        """Connections that have sent no request yet, as those of a client's pool."""
        async with serving() as service, await service.connect() as client:
            await until(lambda: service.server.has_newcomers)
            assert await client.ask(get(b"/1")) == ok(b"/1")
            assert not service.server.has_newcomers

    async def test_a_stop_answers_what_was_asked_and_ends(self) -> None:
        """Idle connections are closed, others after their answers."""
        application = Later()
        async with serving(application) as service:
            async with await service.connect() as idle, await service.connect() as busy:
                busy.writer.write(get(b"/1"))
                await until(lambda: len(service.server) == 2 and bool(application.seen))
                service.server.stop(1.0)
                assert await idle.reader.read() == b""
                assert not service.task.done()
                application.answer()
                assert await busy.reader.read() == ok(b"/1", closes=True)
                await service.task
            assert service.server.ended == 0

    async def test_what_is_not_answered_at_the_end_is_ended_and_counted(self) -> None:
        """What is not answered ends, and is counted; `serve` ends. A late answer goes nowhere."""
        application = Later()
        async with serving(application) as service, await service.connect() as client:
            client.writer.write(post(b"Content-Length: 1000\r\n"))
            await until(lambda: bool(application.seen))
            service.server.stop(1.0)
            service.server.end_all()
            application.answer()
            with pytest.raises(ConnectionResetError):
                await client.reader.read()
            await service.task
            assert service.server.ended == 1

    async def test_a_stop_without_connections_ends_at_once(self) -> None:
        """It is as quick before anybody came as after all have left."""
        async with serving() as service:
            service.server.stop(1.0)
            await service.task

    async def test_a_fault_in_the_check_ends_the_server(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The worker then says so and is replaced; else nothing would end stalled connections."""
        server = HttpServer(echo, socket.create_server(("127.0.0.1", 0)), 16, 0.001)

        async def fail() -> None:
            raise RuntimeError

        monkeypatch.setattr(server, "_check", fail)
        with server.listener, pytest.raises(RuntimeError):
            await server.serve()
        server.stop_accepting()
        await asyncio.sleep(0)


class TestReaders:
    """Real windows and acknowledgements, with a patience of a fifth of a second."""

    async def test_a_client_that_takes_nothing_is_ended_logged_and_counted(self) -> None:
        """An operator sees why a connection was ended."""
        async with serving(large, timeout_seconds=0.2) as service:
            with socket.create_connection(service.address) as client, capture_logs() as lines:
                client.send(get())
                await until(lambda: service.server.ended == 1)
                await until(lambda: len(service.server) == 0)
            assert [(line["event"], line["count"], line["log_level"]) for line in lines] == [
                ("ended connections whose clients took nothing", 1, "info")
            ]

    async def test_one_that_reads_slowly_gets_the_whole_answer(self) -> None:
        """Through a small window, over several times its patience."""
        async with serving(large, timeout_seconds=0.2) as service:
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
                client.connect(service.address)
                client.setblocking(False)
                client.send(get())
                loop, size = asyncio.get_running_loop(), 0
                began = loop.time()
                while size < LARGE:
                    size += len(await loop.sock_recv(client, 65_536))
                    if size < LARGE / 2 and service.server.now < began + 1.0:
                        await next_check(service.server)
            assert (size > LARGE, service.server.ended) == (True, 0)

    async def test_the_last_answer_reaches_a_client_that_goes_on_sending(self) -> None:
        """A body of 8 MB that nobody wants: it may be sent before the answer is read."""
        async with serving() as service, await service.connect() as client:
            client.writer.write(post(b"Content-Length: 8000000\r\n", b"/1", b"x" * 2_000_000))
            await client.writer.drain()
            client.writer.write(b"x" * 1_000_000)
            assert await client.ask() == ok(b"/1", closes=True)


async def test_a_client_that_pipelines_does_not_hold_up_others() -> None:
    """It sends ten thousand requests at once; another client's one is answered among them, by its turn."""
    answered: Counter[bytes] = Counter()

    def count(exchange: Exchange) -> None:
        answered[exchange.path] += 1
        echo(exchange)

    async with serving(count) as service, await service.connect() as greedy, await service.connect() as other:
        greedy.writer.write(get(b"/greedy") * 10_000)
        await until(lambda: answered[b"/greedy"] > 0)
        assert await other.ask(get(b"/1")) == ok(b"/1")
        assert answered[b"/greedy"] < 5_000
        assert await greedy.reader.readexactly(10_000 * len(ok(b"/greedy"))) == ok(b"/greedy") * 10_000


async def test_peers_that_vanish_at_once() -> None:
    """Clients that reset before they are accepted, or in the middle of anything, stop no other client."""
    async with serving() as service:
        for sent in (b"", b"GET", get(), post(b"Content-Length: 9\r\n", b"/", b"x"), get() * 100):
            with socket.create_connection(service.address) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.send(sent)
        async with await service.connect() as good:
            assert await good.ask(get(b"/1")) == ok(b"/1")
            await until(lambda: len(service.server) == 1)
