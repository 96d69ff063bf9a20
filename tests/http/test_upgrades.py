"""An offer of another protocol is ignored, and its request served (RFC 9110, 7.8).

Java's HttpClient offers h2c with each request until it has an answer.
"""

from __future__ import annotations

import pytest

from tests.http.kit import Peer, Reader, get, ok, post

LENGTH = b"Content-Length: %d\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"

OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"


async def test_without_a_body() -> None:
    """More than once on a connection, and in one packet."""
    peer = Peer()
    peer.send(get(b"/1", OFFER), get(b"/2", OFFER) + get(b"/3") + get(b"/4", OFFER))
    assert await peer.answers() == ok(b"/1") + ok(b"/2") + ok(b"/3") + ok(b"/4")


@pytest.mark.parametrize("framing", [LENGTH % 10, CHUNKED], ids=["length", "chunked"])
@pytest.mark.parametrize("cut", [0, 1, 5, None])
async def test_with_a_body(framing: bytes, cut: int | None) -> None:
    """However it arrives, and the next request as well, which may have an unknown method."""
    body = b"0123456789" if framing == LENGTH % 10 else b"3\r\n012\r\n7\r\n3456789\r\n0\r\n\r\n"
    for following in (get(b"/2"), get(b"/2", method=b"FOO"), get(b"/2", OFFER)):
        application = Reader()
        peer = Peer(application)
        peer.send(post(OFFER + framing, b"/1", body[:cut]))
        if cut is not None:
            peer.send(body[cut:])
        assert await peer.answers() == ok(b"0123456789")
        peer.send(following)
        await peer.answers()
        assert application.asked == [("POST", b"/1"), (following.split(b" ")[0].decode(), b"/2")]


async def test_bodies_that_offer_an_upgrade_are_discarded() -> None:
    """A body that offers an upgrade is discarded, also an empty one and one that the application leaves."""
    peer = Peer()
    peer.send(post(OFFER + LENGTH % 0, b"/1"), post(OFFER + LENGTH % 3, b"/2", b"abc"), get(b"/3"))
    assert peer.written == ok(b"/1") + ok(b"/2") + ok(b"/3")
