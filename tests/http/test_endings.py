"""How connections end: by the clock, by the client, and so that the last answer can be read."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from tests.http.kit import Later, Peer, get, ok, post


class TestClock:
    """`server.now` goes on by about a second between two checks."""

    async def test_an_idle_connection_is_closed_after_10_s(self) -> None:
        """Counted from the last answer, or from its beginning."""
        peer = Peer()
        assert peer.check(9.0) == ""
        peer.send(get(b"/1"))
        assert peer.check(10.0) == ""
        assert peer.check(0.5) == "close"

    async def test_a_stalled_head_is_closed_after_10_s(self) -> None:
        """Counted from its first byte: others buy no time."""
        peer = Peer()
        peer.check(9.0)
        peer.send(b"GET / HT")
        assert peer.check(9.0) == ""
        peer.send(b"TP/1.1\r\n")
        assert peer.check(2.0) == "close"

    async def test_the_rest_of_a_body_that_nobody_reads(self) -> None:
        """10 s without a byte of it."""
        peer = Peer()
        peer.send(post(b"Content-Length: 5\r\n"))
        assert peer.check(9.0) == ""
        peer.send(b"1")
        assert peer.check(9.0) == ""
        assert peer.check(2.0) == "close"

    async def test_an_answer_has_all_the_time(self) -> None:
        """The application has its own deadlines; requests that wait for it do not count either."""
        peer = Peer(Later())
        peer.send(get() + get())
        assert peer.check(1_000.0) == ""

    async def test_bytes_that_the_client_has_not_taken(self) -> None:
        """It has 60 s for some of them. Once it has them all it is idle, from then on."""
        peer = Peer()
        peer.send(get())
        peer.transport.unread = 1_000
        assert peer.check(1.0) == ""
        assert peer.check(59.0) == ""
        peer.transport.unread = 999
        assert peer.check(1.0) == ""
        peer.transport.unread = 0
        assert peer.check(9.0) == ""
        peer.send(get())
        peer.transport.unread = 2_000
        assert peer.check(9.0) == ""
        assert peer.check(59.0) == ""
        assert peer.check(1.0) == "abort"


class TestLinger:
    """A client that still sends can read the last answer: a reset would discard it (RFC 9112, 9.6)."""

    async def test_its_end_is_waited_for(self) -> None:
        """What it sends meanwhile is read and forgotten."""
        peer = Peer()
        peer.send(post(b"Content-Length: 1000000\r\n", b"/1"), b"x" * 100_000, get(b"/2"))
        assert peer.written == ok(b"/1", closes=True)
        assert (peer.transport.has_ended, peer.transport.is_paused, peer.transport.end) == (True, False, "")
        peer.end()
        assert peer.transport.end == "close"

    async def test_a_body_that_came_with_its_head(self) -> None:
        """More of it than may wait for an application: it goes on being read."""
        peer = Peer()
        peer.send(post(b"Content-Length: 1000000\r\n", b"/1", b"x" * 100_000))
        assert (peer.transport.has_ended, peer.transport.is_paused) == (True, False)

    async def test_a_connection_lingers_for_a_second_whatever_is_sent(self) -> None:
        """A client that goes on sending holds it no longer."""
        peer = Peer()
        peer.send(post(b"Content-Length: 1000000\r\n"))
        assert peer.check(0.9) == ""
        peer.send(b"x" * 1_000)
        assert peer.check(0.2) == "close"

    async def test_for_all_of_it(self) -> None:
        """It holds after an answer just before the check: `now` is a second old then."""
        peer = Peer()
        peer.late = 0.99
        peer.send(post(b"Content-Length: 1000000\r\n"))
        assert peer.check(1.001) == ""
        assert peer.check(1.0) == "close"

    async def test_not_for_a_client_that_has_sent_all(self) -> None:
        """It is closed at once, as after HTTP/1.0."""
        for request in (get(b"/1", b"Connection: close\r\n"), get(b"/1", version=b"1.0")):
            peer = Peer()
            peer.send(request)
            assert (peer.written, peer.transport.end) == (ok(b"/1", closes=True), "close")


class TestClient:
    """The client ends its side, or is gone."""

    async def test_half_closed_clients_are_answered_all_their_requests(
        self, application: Later, peer: Peer
    ) -> None:
        """A client may say that it sends no more, and then read."""
        peer.send(get(b"/1") + get(b"/2"))
        peer.end()
        for path in (b"/1", b"/2"):
            application.answer()
            assert await peer.answers() == ok(path)
        assert peer.transport.end == "close"

    async def test_refusals_reach_half_closed_clients(self, application: Later, peer: Peer) -> None:
        """A half-closed client gets the answer to its first request, and then the refusal of what follows."""
        peer.send(get(b"/1") + b"\0")
        peer.end()
        application.answer()
        written = await peer.answers()
        assert written.startswith(ok(b"/1") + b"HTTP/1.1 400 ")
        assert peer.transport.end == "close"

    @pytest.mark.parametrize("how", ["end", "lose"])
    async def test_gone_resolves_once_the_client_has_left(
        self, application: Later, peer: Peer, how: str
    ) -> None:
        """gone() returns once the client has left: to waiting tasks, a later call, and the next request's."""
        peer.send(get(b"/1") + get(b"/2"))
        first = application.last
        tasks = [asyncio.create_task(first.wait_for_disconnect()) for _ in range(2)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)
        getattr(peer, how)()
        await asyncio.gather(*tasks)
        await first.wait_for_disconnect()
        if how == "end":
            application.answer()
            await peer.answers()
            await application.last.wait_for_disconnect()

    async def test_one_that_waits_for_gone_may_be_cancelled(self, application: Later, peer: Peer) -> None:
        """The others go on waiting."""
        peer.send(get())
        impatient, patient = (asyncio.create_task(application.last.wait_for_disconnect()) for _ in range(2))
        await asyncio.sleep(0)
        impatient.cancel()
        await asyncio.sleep(0)
        assert not patient.done()
        peer.lose()
        await patient

    async def test_an_idle_client_that_ends_is_closed(self) -> None:
        """It holds in the middle of a head too."""
        for sent in (b"", get(), b"GET / HT"):
            peer = Peer()
            peer.send(*([sent] if sent else []))
            peer.end()
            assert peer.transport.end == "close"

    async def test_a_lost_client_is_written_nothing(self, application: Later, peer: Peer) -> None:
        """Whatever the application does: the fake transport refuses it."""
        peer.send(post(b"Content-Length: 5\r\nExpect: 100-continue\r\n"))
        peer.lose()
        with pytest.raises(EOFError):
            await application.last.wait_for_body()
        application.last.begin(200, b"")
        await application.last.write(b"x")
        application.last.end()
        application.last.abort()
        assert peer.open == set()

    async def test_a_closed_connection_is_freed_at_once(self) -> None:
        """It is not a cycle: those are collected seldom."""
        peer = Peer()
        peer.send(get(), post(b"Content-Length: 5\r\n"))
        peer.lose()
        gone = weakref.ref(peer.connection)
        gc.disable()
        try:
            del peer.connection
            assert gone() is None
        finally:
            gc.enable()

    async def test_a_writer_waits_for_a_slow_client_until_that_is_gone(self) -> None:
        """What is sent slowly fills no memory, and nobody is waited for in vain."""
        for end in ("resume", "lose"):
            application = Later()
            peer = Peer(application)
            peer.send(get())
            application.last.begin(200, b"", 2)
            peer.connection.pause_writing()
            writing = asyncio.create_task(application.last.write(b"x"))
            await peer.answers()
            assert not writing.done()
            peer.connection.resume_writing() if end == "resume" else peer.lose()
            await writing


async def test_a_stop_closes_idle_connections_and_others_after_their_answers() -> None:
    """A stop loses no answer and waits for no idle client."""
    idle, busy = Peer(), Peer(Later())
    busy.send(get())
    for peer in (idle, busy):
        peer.connection.close_if_idle()
    assert (idle.transport.end, busy.transport.end) == ("close", "")


@pytest.mark.parametrize("further", [b"", get(b"/2")])
async def test_a_stop_closes_what_began_before_it(further: bytes) -> None:
    """The answer's head said nothing of an end; a request that has come meanwhile is answered."""
    application = Later()
    peer = Peer(application)
    peer.send(get() + further)
    application.last.begin(200, b"", 0)
    peer.connection.close_if_idle()
    peer.is_draining = True
    application.last.end()
    await peer.answers()
    if further:
        assert peer.transport.end == ""
        application.answer()
        assert peer.written == ok(b"/2", closes=True)
    assert peer.transport.end == "close"
