"""Requests that a client sends before it has the answer of the one before (RFC 9112, 9.3.2)."""

from __future__ import annotations

import asyncio

import pytest

from tests.http.kit import Later, Peer, get, ok, post


async def test_in_order_one_a_turn_of_the_loop() -> None:
    """Others are served between two answers of one client."""
    peer = Peer()
    peer.send(get(b"/1") + get(b"/2") + get(b"/3"))
    for path in (b"/1", b"/2", b"/3"):
        assert peer.written == ok(path)
        await asyncio.sleep(0)
    assert peer.written == b""


async def test_nothing_is_read_while_requests_wait(application: Later, peer: Peer) -> None:
    """A client's requests hold no more memory than one read; the last of them lets the next be read."""
    peer.send(get(b"/1") + get(b"/2"))
    assert peer.transport.is_paused
    application.answer()
    assert await peer.answers() == ok(b"/1")
    peer.send(get(b"/3"))  # which a transport that is paused does not let through
    assert peer.transport.is_paused
    application.answer()
    await peer.answers()
    application.answer()
    assert await peer.answers() == ok(b"/3")
    assert not peer.transport.is_paused


@pytest.mark.parametrize("cut", [0, 10, 6_000, 8_000])
async def test_a_head_has_no_more_bytes_than_it_says(application: Later, peer: Peer, cut: int) -> None:
    """However it arrives: an application that trusts it measures only what may be large."""
    head = get(b"/1", b"X-Long: %b\r\n" % (b"a" * 8_100))
    peer.read(get() + head[:cut])
    for at in range(cut, len(head), 8_192):
        application.answer()
        await peer.answers()
        peer.read(head[at : at + 8_192])
    await peer.answers()
    assert [exchange.path for exchange in application.seen] == [b"/", b"/1"]
    assert len(get()) <= application.seen[0].head.most_bytes
    assert len(head) <= application.last.head.most_bytes


async def test_the_body_of_a_request_that_waited_is_read(application: Later, peer: Peer) -> None:
    """The head came with the request before it, the body comes later."""
    peer.send(get(b"/1") + post(b"Content-Length: 4\r\n", b"/2"))
    application.answer()
    await peer.answers()
    assert application.asked == [("GET", b"/1"), ("POST", b"/2")]
    reading = asyncio.create_task(application.last.wait_for_body())
    await asyncio.sleep(0)
    peer.send(b"abcd")
    await reading
    assert application.last.take_body() == b"abcd"


async def test_a_client_that_reads_no_answer_gets_no_further_one(application: Later, peer: Peer) -> None:
    """Answers would fill the memory. They go on once the client has read most of them."""
    peer.connection.pause_writing()
    peer.send(get(b"/1") + get(b"/2"))
    assert await peer.answers() == b""
    assert application.seen == []
    peer.connection.resume_writing()
    await asyncio.sleep(0)
    assert application.asked == [("GET", b"/1")]
    peer.connection.pause_writing()
    application.answer()
    await peer.answers()
    assert len(application.seen) == 1
    assert peer.transport.is_paused


async def test_requests_of_a_client_that_is_gone_are_dropped(application: Later, peer: Peer) -> None:
    """They wait for the one before them, whose answer nobody reads either."""
    peer.send(get(b"/1") + get(b"/2"))
    peer.lose()
    application.answer()
    assert await peer.answers() == b""
    assert application.asked == [("GET", b"/1")]


async def test_what_follows_the_last_answer_is_dropped() -> None:
    """Requests after `Connection: close`; other bytes there are no fault (RFC 9112, 9.6)."""
    for more in (get(b"/2"), b"\0\0"):
        peer = Peer()
        peer.send(get(b"/1", b"Connection: close\r\n") + more)
        assert await peer.answers() == ok(b"/1", closes=True)
        assert peer.transport.has_ended or peer.transport.end == "close"


async def test_a_stop_answers_one_more(application: Later, peer: Peer) -> None:
    """A service that drains answers one more request; that answer is the last of its connection."""
    peer.send(get(b"/1") + get(b"/2"))
    peer.is_draining = True
    application.answer()
    assert await peer.answers() == ok(b"/1", closes=True)
    assert application.asked == [("GET", b"/1")]
    assert peer.transport.has_ended  # and is not closed: what is not read yet would reset it
    assert not peer.transport.is_paused


async def test_an_application_that_fails_ends_the_connection() -> None:
    """An exception ends it: the client learns that no answer comes."""

    def fail(_: object) -> None:
        raise RuntimeError

    peer = Peer(fail)
    peer.send(get() + get())
    assert await peer.answers() == b""
    assert peer.transport.end == "abort"


class TestUnknownMethods:
    """Methods that llhttp does not know."""

    @pytest.mark.parametrize("method", [b"FOO", b"get", b"BREW", b"GETX", b"M-SEARCHES", b"!#$%&'*+.^_`|~9"])
    async def test_reach_the_application_by_their_name(self, method: bytes) -> None:
        """Unknown methods do so after another request, and before one."""
        application = Later()
        peer = Peer(application)
        for _ in range(2):
            peer.send(get(b"/1", method=method))
            assert application.asked[-1] == (method.decode(), b"/1")
            application.answer()
            peer.send(get(b"/2"))
            assert application.asked[-1] == ("GET", b"/2")
            application.answer()
        assert peer.written == (ok(b"/1") + ok(b"/2")) * 2

    async def test_unknown_methods_have_bodies_like_others(self, application: Later, peer: Peer) -> None:
        """Their heads come in pieces, too."""
        peer.send(b"FOO /", b"1 HTTP/1.1\r\nHost: a\r\nContent-", b"Length: 4\r\n\r\nab", b"cd" + get(b"/2"))
        assert application.asked == [("FOO", b"/1")]
        assert application.last.take_body() == b"abcd"
        application.answer()
        await peer.answers()
        assert application.asked == [("FOO", b"/1"), ("GET", b"/2")]

    @pytest.mark.parametrize(
        "pieces",
        [
            [get(b"/1") + get(b"/2", method=b"FOO")],
            [get(b"/1", method=b"FOO") + get(b"/2", method=b"BAR")],
            [get(b"/1") + b"GE", get(b"/2", method=b"FOO")],
            [get(b"/1") + b"GE", get(b"/2", method=b"DELETE")],
            [post(b"Content-Length: 4\r\n", b"/1"), b"abcd" + get(b"/2", method=b"FOO")],
            [post(b"Content-Length: 4\r\n", b"/1", b"a"), b"bcd" + get(b"/2", method=b"FOO")],
            [
                post(b"Content-Length: %d\r\n" % (1 + len(get(b"/evil"))), b"/1", b"a"),
                get(b"/evil") + get(b"/2", method=b"FOO"),
            ],
            [b"\r\n" + get(b"/2", method=b"FOO")],
            [b"(FOO) / HTTP/1.1\r\n\r\n"],
        ],
        ids=(
            *("pipelined", "two", "second-half-of-a-method", "half-and-a-method", "after-a-body"),
            *(
                "after-a-piece-of-a-body",
                "after-a-body-that-looks-like-a-request",
                "after-a-line",
                "no-token",
            ),
        ),
    )
    async def test_are_refused_where_they_are_not_first_in_what_arrives(self, pieces: list[bytes]) -> None:
        """What stands before them is not parsed twice."""
        application = Later()
        peer = Peer(application)
        peer.send(*pieces)
        while application.seen and not application.last.is_answered:
            application.answer()
            await asyncio.sleep(0)
        written = await peer.answers()
        assert all(path in {b"/1"} for _, path in application.asked)
        assert written.count(b"HTTP/1.1 400 Bad Request\r\n") == 1
        assert written.count(b"HTTP/1.1 ") == len(application.seen) + 1


async def test_many_in_one_read_are_parsed_without_recursion() -> None:
    """Each ignored offer of an upgrade is parsed anew."""
    peer = Peer()
    peer.send(get(b"/", b"Connection: upgrade\r\nUpgrade: x\r\n") * 125)
    assert peer.written == ok(b"/")


async def test_the_peer_is_the_clients_address_and_port() -> None:
    """Failed authentications are counted by this address."""
    application = Later()
    Peer(application).send(get())
    assert application.last.client == ("192.0.2.1", 50_000)
