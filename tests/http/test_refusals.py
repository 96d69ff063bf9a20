"""What is not an HTTP/1.1 request: refused with an Error, and never read as two requests (smuggling)."""

from __future__ import annotations

import json
from email.utils import parsedate

import pytest

from tests.http.kit import Later, Peer, get, ok, post
from tests.support.cases import every_case

EVIL = get(b"/evil")
LENGTH = b"Content-Length: %d\r\n" % len(EVIL)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LAST = b"0\r\n\r\n"


def refused(written: bytes) -> int:
    """The status of a refusal, which is whole and announces the end."""
    head, _, body = written.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    headers = dict(line.split(b": ", 1) for line in lines)
    status = int(first.split(b" ")[1])
    error = json.loads(body)
    codes = {400: "invalid_request", 414: "uri_too_long", 431: "headers_too_large"}
    assert error == {"code": codes[status], "message": error["message"], "status": status}
    assert int(headers.pop(b"content-length")) == len(body)
    assert parsedate(headers.pop(b"date").decode()) is not None
    assert headers == {
        b"content-type": b"application/json",
        b"cache-control": b"no-store",
        b"x-content-type-options": b"nosniff",
        b"connection": b"close",
    }
    return status


class TestSizes:
    """Heads larger than 64 KiB; the application refuses those above 16 KiB itself."""

    @pytest.mark.parametrize(
        ("begun", "status"),
        [
            (b"GET /" + b"x" * 66_000, 414),
            (b"GET / HTTP/1.1\r\nX: " + b"x" * 66_000, 431),
            (b"GET / HTTP/1.1\r\n" + b"X:\r\n" * 17_000, 431),
            (get() + b"GET / HTTP/1.1\r\nX: " + b"x" * 130_000, 431),
        ],
        ids=["target", "one-line", "lines", "pipelined"],
    )
    @pytest.mark.parametrize("size", [1_000, 60_000])
    async def test_a_head_that_does_not_end(self, begun: bytes, status: int, size: int) -> None:
        """A head that does not end is refused with its status, whatever the size of the pieces."""
        application = Later()
        peer = Peer(application)
        pieces = [begun[at : at + size] for at in range(0, len(begun), size)]
        peer.send(*pieces)
        if application.seen:
            application.answer()
        written = await peer.answers()
        assert refused(written.removeprefix(ok(b"/"))) == status
        peer.send(get())
        assert len(application.seen) == written.count(ok(b"/"))

    async def test_one_just_below(self) -> None:
        """60 KiB reach the application."""
        application = Later()
        Peer(application).send(get(b"/" + b"x" * 60_000, b"X: y\r\n"))
        assert len(application.last.path) == 60_001


@every_case(
    "sent",
    [
        *(
            b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03",
            b"\0",
            b"GET\r\n",
            b"GET /\r\n\r\n",
            b"hello\r\n\r\n",
        ),
        *(b"GET / x HTTP/1.1\r\n\r\n", b"GET /\tHTTP/1.1\r\n\r\n"),
        *(get(version=b"2.0"), get(version=b"0.9"), get(version=b"1.2"), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        *(get("/é".encode()), b"GET / HTTP/1.1\nHost: a\n\n", b"GET / HTTP/1.1\rHost: a\r\r"),
        *(get(b"/", line + b"\r\n") for line in (b"X : y", b" X: y", b"X", b"X\0: y", b"X\xe9: y")),
        *(
            get(b"/", line + b"\r\n")
            for line in (b"X: a\r\n b", b"X: a\r\n\tb", b"X: a\0b", b"X: a\rb", b"X: a\nY: b")
        ),
    ],
)
async def test_what_is_no_http(sent: bytes) -> None:
    """400, however it arrives, and nothing after it is read."""
    for pieces in ([sent + EVIL], [bytes([byte]) for byte in sent + EVIL]):
        application = Later()
        peer = Peer(application)
        peer.send(*pieces)
        assert (refused(await peer.answers()), application.seen) == (400, [])
        assert peer.transport.has_ended or peer.transport.end == "close"


async def test_after_the_answers_to_good_requests(application: Later, peer: Peer) -> None:
    """Each of them is answered first."""
    peer.send(get(b"/1") + get(b"/2") + b"\0")
    for path in (b"/1", b"/2"):
        assert application.asked[-1][1] == path
        application.answer()
        written = await peer.answers()
        assert written.startswith(ok(path))
    assert refused(written.removeprefix(ok(b"/2"))) == 400
    assert len(application.seen) == 2


@pytest.mark.parametrize(
    "around", [b"", b"Connection: upgrade\r\nUpgrade: h2c\r\n"], ids=["plain", "upgrade"]
)
@pytest.mark.parametrize("method", [b"POST", b"GET", b"FOO"])
@every_case(
    "framing",
    [
        *(LENGTH + b"Content-Length: 0\r\n", b"Content-Length: 0\r\n" + LENGTH, LENGTH * 2),
        *(LENGTH[:-2] + b", 0\r\n", b"Content-Length: 0, 0\r\n", b"Content-Length: +3\r\n"),
        *(
            b"Content-Length: -1\r\n",
            b"Content-Length: 0x3\r\n",
            b"Content-Length: 3 3\r\n",
            b"Content-Length:\r\n",
        ),
        *(
            b"Content-Length: 1_0\r\n",
            b"Content-Length: 99999999999999999999\r\n",
            b"Content-Length: \xb2\r\n",
        ),
        *(LENGTH + CHUNKED, CHUNKED + LENGTH, b"Content-Length: 0\r\n" + CHUNKED, LENGTH + CHUNKED.lower()),
        *(b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding: chunked, identity\r\n"),
        *(
            b"Transfer-Encoding: identity\r\n",
            b"Transfer-Encoding: gzip\r\n",
            b"Transfer-Encoding: chunkedx\r\n",
        ),
        *(CHUNKED + b"Transfer-Encoding: identity\r\n", b'Transfer-Encoding: "chunked"\r\n'),
        *(b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding\t: chunked\r\n", b" " + CHUNKED),
        *(b"Transfer-Encoding:\x0bchunked\r\n", b"Transfer-Encoding:\r\n chunked\r\n", b"X: y\n" + CHUNKED),
        *(
            b"X: y\r" + CHUNKED,
            b"X: y\rTransfer-Encoding: chunked\r\n",
            b"Transfer-Encoding: chunked;q=1\r\n",
        ),
        *(b"Transfer-Encoding: chunk\r\n", b"Transfer-Encoding:\r\n", b"Transfer\0-Encoding: chunked\r\n"),
    ],
)
async def test_never_two_requests_out_of_one(framing: bytes, method: bytes, around: bytes) -> None:
    """Whatever a proxy takes for the body: the answer is the last one, and nothing after it is a request."""
    for body in (LAST + EVIL, EVIL):
        application = Later()
        peer = Peer(application)
        peer.send(get(b"/", around + framing, method=method) + body)
        if not peer.transport.end:
            peer.read(EVIL)
        if application.seen and not application.last.is_answered:
            application.answer()
        written = await peer.answers()
        assert written.count(b"HTTP/1.1 ") == 1
        assert b"connection: close\r\n" in written
        assert b"/evil" not in [path for _, path in application.asked]
        assert peer.transport.has_ended or peer.transport.end == "close"


@every_case("framing", [LENGTH, CHUNKED, b"Content-Length:%d \r\n" % len(EVIL)])
@every_case("method", [b"GET", b"HEAD", b"DELETE", b"OPTIONS", b"FOO", b"CONNECT"])
async def test_a_body_of_any_method_is_a_body(framing: bytes, method: bytes) -> None:
    """A body that looks like a request is one too; the next request is read where it ends."""
    body = b"%x\r\n%b\r\n%b" % (len(EVIL), EVIL, LAST) if framing == CHUNKED else EVIL
    application = Later()
    peer = Peer(application)
    peer.send(get(b"/1", framing, method=method) + body + get(b"/2"))
    application.answer()
    await peer.answers()
    assert application.asked == [(method.decode(), b"/1"), ("GET", b"/2")]


class TestTargets:
    """The request line."""

    @pytest.mark.parametrize(
        ("target", "path", "query", "host"),
        [
            (b"http://b/v1/pets?x=1?2", b"/v1/pets", b"x=1?2", b"b"),
            (b"HTTPS://b:8080", b"/", b"", b"b:8080"),
            (b"http://b?x", b"/", b"x", b"b"),
            (b"http://u@b/", b"/", b"", b"u@b"),
            (b"/http://b/", b"/http://b/", b"", b"a"),
            (b"//b/", b"//b/", b"", b"a"),
            (b"/%2e%2e/?%3f#", b"/%2e%2e/", b"%3f#", b"a"),
            (b"*", b"*", b"", b"a"),
        ],
    )
    async def test_an_absolute_one_says_the_host(
        self, target: bytes, path: bytes, query: bytes, host: bytes
    ) -> None:
        """Others stay as they were sent (RFC 9112, 3.2)."""
        application = Later()
        Peer(application).send(get(target, b"X-A: b\r\n"))
        exchange = application.last
        assert (exchange.path, exchange.query) == (path, query)
        assert sorted(exchange.head.headers) == [(b"host", host), (b"x-a", b"b")]

    @pytest.mark.parametrize(
        ("lines", "hosts"), [(b"", 1), (b"Host: a\r\n", 1), (b"Host: a\r\nhost: b\r\n", 2)]
    )
    async def test_an_absolute_one_hides_no_second_host(self, lines: bytes, hosts: int) -> None:
        """The application refuses two; one that is missing is filled in."""
        application = Later()
        Peer(application).send(b"GET http://c/ HTTP/1.1\r\n%b\r\n" % lines)
        assert application.last.head.headers == [(b"host", b"c")] * hosts


async def test_white_space_around_a_value_is_none_of_it() -> None:
    """RFC 9112, 5.1. What is within stays."""
    application = Later()
    Peer(application).send(get(lines=b"X-A: \t b  c \t\r\nX-B: \r\n"))
    assert application.last.head.headers == [(b"host", b"a"), (b"x-a", b"b  c"), (b"x-b", b"")]


async def test_empty_lines_before_a_request_are_skipped() -> None:
    """Some clients send one after a body (RFC 9112, 2.2)."""
    peer = Peer()
    peer.send(b"\r\n" + get(b"/1"), post(b"Content-Length: 1\r\n", b"/2", b"x\r\n"), get(b"/3"))
    assert peer.written == ok(b"/1") + ok(b"/2") + ok(b"/3")
