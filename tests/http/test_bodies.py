"""Bodies of requests: how they reach the application, and what becomes of one that it does not read."""

from __future__ import annotations

import asyncio

import pytest

from petstore.http.exchange import DISCARDED_BYTES_MAX
from tests.http.kit import Later, Peer, Reader, get, ok, post

LENGTH = b"Content-Length: %d\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
EXPECT = b"Expect: 100-continue\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class TestUnread:
    """A body that an answer leaves is discarded, or the answer ends the connection (RFC 9112, 9.3)."""

    @pytest.mark.parametrize("size", [1, 5, DISCARDED_BYTES_MAX])
    @pytest.mark.parametrize("arrived", [0, 1])
    async def test_a_short_one_is_discarded(self, size: int, arrived: int) -> None:
        """However much of it has arrived with the head. The next request is then answered."""
        peer = Peer()
        peer.send(post(LENGTH % size, b"/1", b"x" * arrived))
        assert peer.written == ok(b"/1")
        peer.send(b"x" * (size - arrived) + get(b"/2"))
        assert peer.written == ok(b"/2")

    @pytest.mark.parametrize(
        "framing",
        [
            LENGTH % (DISCARDED_BYTES_MAX + 1),
            CHUNKED,
            EXPECT + LENGTH % 5,
            LENGTH.replace(b"%d", b"0" * 30 + b"5"),
            LENGTH.replace(b"%d", b"0" * 5_000 + b"5"),
        ],
        ids=["too-large", "chunked", "expect", "30-zeros", "more digits than Python reads"],
    )
    async def test_an_unread_body_ends_the_connection(self, framing: bytes) -> None:
        """Nobody asks the client for it."""
        peer = Peer()
        peer.send(post(framing, b"/1"))
        assert peer.written == ok(b"/1", closes=True)
        assert peer.transport.has_ended

    async def test_a_late_one_has_had_its_time(self, application: Later, peer: Peer) -> None:
        """The server closes a connection after a 408, and waits for nothing more of its body."""
        peer.send(post(LENGTH % 5, body=b"x"))
        application.last.answer(408, b"", b"")
        assert b"connection: close\r\n" in peer.written

    async def test_one_that_was_read_in_part(self) -> None:
        """What decides is its announced size."""
        for size, closes in ((10, False), (70_000, True)):
            application = Later()
            peer = Peer(application)
            peer.send(post(LENGTH % size, b"/1", b"12345"))
            assert application.last.take_body() == b"12345"
            application.answer()
            assert peer.written == ok(b"/1", closes=closes)

    async def test_one_that_was_asked_for_is_discarded(self, application: Later, peer: Peer) -> None:
        """The client sends it after 100 Continue, whatever the answer is."""
        peer.send(post(EXPECT + LENGTH % 5, b"/1"))
        reading = asyncio.create_task(application.last.wait_for_body())
        assert await peer.answers() == CONTINUE
        application.answer()
        assert peer.written == ok(b"/1")
        peer.send(b"12345")
        await reading

    async def test_a_client_that_ends_in_the_middle_of_it_is_closed(self) -> None:
        """A client that ends in the middle of a body that is being discarded is closed."""
        peer = Peer()
        peer.send(post(LENGTH % 5, b"/1", b"1234"))
        assert peer.written == ok(b"/1")
        peer.end()
        assert peer.transport.end == "close"

    @pytest.mark.parametrize("framing", [LENGTH % 5, CHUNKED, b""], ids=["length", "chunked", "none"])
    async def test_a_complete_body_that_is_not_read_keeps_the_connection(self, framing: bytes) -> None:
        """The next request on it is answered."""
        body = {LENGTH % 5: b"12345", CHUNKED: b"5\r\n12345\r\n0\r\n\r\n"}.get(framing, b"")
        peer = Peer()
        peer.send(post(framing, b"/1", body), get(b"/2"))
        assert peer.written == ok(b"/1") + ok(b"/2")


class TestRead:
    """An application that reads."""

    @pytest.mark.parametrize("framing", [LENGTH % 10, CHUNKED], ids=["length", "chunked"])
    async def test_in_whatever_pieces(self, framing: bytes) -> None:
        """Byte by byte, the head too. Trailers are not headers, of this request or the next."""
        body = b"0123456789"
        chunks = b"3;a=b\r\n012\r\n7\r\n3456789\r\n0\r\nX-Trailer: 1\r\nHost: evil\r\n\r\n"
        application = Reader()
        peer = Peer(application)
        request = post(framing, b"/1", chunks if framing == CHUNKED else body)
        peer.send(*(bytes([byte]) for byte in request))
        assert await peer.answers() == ok(body)
        peer.send(get(b"/2"))
        assert await peer.answers() == ok(b"")
        assert application.seen[0].head.headers[0] == application.last.head.headers[0] == (b"host", b"a")
        assert len(application.seen[0].head.headers) == 2
        assert len(application.last.head.headers) == 1

    async def test_100_continue_is_sent_once_when_the_application_asks(self) -> None:
        """A client that waits for it sends its body then."""
        application = Reader()
        peer = Peer(application)
        peer.send(post(EXPECT + LENGTH % 10))
        assert await peer.answers() == CONTINUE
        peer.send(b"01234")
        assert await peer.answers() == b""
        peer.send(b"56789")
        assert await peer.answers() == ok(b"0123456789")

    @pytest.mark.parametrize("body", [b"0123456789", b"0"])
    async def test_a_client_that_did_not_wait_is_not_asked(self, body: bytes) -> None:
        """RFC 9110, 10.1.1: some of the body has arrived."""
        peer = Peer(Reader())
        peer.send(post(EXPECT + LENGTH % len(body), body=body))
        assert await peer.answers() == ok(body)

    async def test_a_client_of_http_1_0_is_not_asked(self) -> None:
        """It would read 100 as the answer (RFC 9110, 10.1.1)."""
        peer = Peer(Reader())
        peer.send(get(b"/", EXPECT + LENGTH % 2, method=b"POST", version=b"1.0"))
        assert await peer.answers() == b""
        peer.send(b"ab")
        assert await peer.answers() == ok(b"ab", closes=True)

    async def test_no_more_than_64_kib_wait_for_the_application(self, application: Later, peer: Peer) -> None:
        """Nothing more is read until it takes them."""
        peer.send(post(LENGTH % 1_000_000), b"x" * 65_536, b"x")
        assert peer.transport.is_paused
        assert len(application.last.take_body()) == 65_537
        assert not peer.transport.is_paused

    @pytest.mark.parametrize(
        ("framing", "arrived"),
        [(LENGTH % 10, b""), (LENGTH % 10, b"01234"), (CHUNKED, b"5\r\n01234\r\n"), (CHUNKED, b"zz\r\n")],
    )
    @pytest.mark.parametrize("how", ["end", "lose"])
    async def test_a_body_that_never_becomes_whole(self, framing: bytes, arrived: bytes, how: str) -> None:
        """The pieces of the body can be taken; then EOFError, though the client may still read."""
        application = Later()
        peer = Peer(application)
        peer.send(post(framing, b"/1"))
        reading = asyncio.create_task(application.last.wait_for_body())
        await asyncio.sleep(0)
        peer.send(*([arrived] if arrived else []))
        getattr(peer, how)()
        if b"0" in arrived:
            await reading
            assert application.last.take_body() == b"01234"
        else:
            with pytest.raises(EOFError):
                await reading
        with pytest.raises(EOFError):
            await application.last.wait_for_body()
        application.answer()
        assert peer.written == (ok(b"/1", closes=True) if how == "end" else b"")

    @pytest.mark.parametrize(
        "chunks",
        [
            *(
                b"5\r\n01234\r\nzz\r\n",
                b"2\r\n01234\r\n",
                b"-1\r\n",
                b"fffffffffffffffff\r\n",
                b"5;x\ny\r\n01234",
            ),
            *(
                b"5\n01234\r\n",
                b"5\r\n01234\n",
                b"5\r\n01234XX0\r\n\r\n",
                b"0x5\r\n01234\r\n",
                b" 5\r\n01234\r\n",
            ),
            b"5;" + b"x" * 70_000,
        ],
    )
    async def test_what_is_no_chunk_ends_the_body(self, chunks: bytes) -> None:
        """Nothing after it is read as a request."""
        application = Later()
        peer = Peer(application)
        peer.send(post(CHUNKED, b"/1"), chunks, get(b"/evil"))
        application.last.take_body()
        with pytest.raises(EOFError):
            await application.last.wait_for_body()
        application.answer()
        assert await peer.answers() == ok(b"/1", closes=True)
        assert application.asked == [("POST", b"/1")]
