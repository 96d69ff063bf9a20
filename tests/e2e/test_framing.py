"""Bytes on a socket: framing, heads and bodies as clients, and worse ones, send them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.raw import RawAnswer, RawConnection, exchange
from tests.support.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-framing")]

BODY = b'{"name":"Rex","categoryId":1}'
JSON = b"Content-Type: application/json\r\n"
_UPGRADE = (
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
LIMITS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-request-id"}


@pytest.fixture(scope="module")
def stalled_head(server: Server) -> Iterator[RawConnection]:
    """A client that stops in the middle of its head, while the tests below go on."""
    with RawConnection(server.port) as connection:
        connection.send(b"GET /v1/pets HTTP/1.1\r\nHost: x\r\n")
        yield connection


@pytest.fixture(scope="module")
def head(server: Server, stalled_head: RawConnection) -> bytes:
    """Host and key."""
    return b"Host: 127.0.0.1\r\nAuthorization: Bearer %s\r\n" % server.key.encode()


def count(server: Server) -> int:
    """How many animals there are: the identifiers are 1, 2, 3 …"""
    ids = "&".join(f"id={n}" for n in range(1, 101))
    return len(server.request("GET", f"/v1/pets?limit=100&{ids}").json())


def post(head: bytes, framing: bytes, media_type: bytes = JSON) -> bytes:
    """The head of a POST."""
    return b"POST /v1/pets HTTP/1.1\r\n" + head + media_type + framing + b"\r\n"


def assert_error(answer: RawAnswer, status: int, code: str) -> None:
    """The Error body and the headers that every answer under /v1 has."""
    assert answer.json() == {"code": code, "message": answer.json()["message"], "status": status}
    assert answer.status == status
    assert set(answer.headers) >= LIMITS


_FRAMINGS = pytest.mark.parametrize(
    "framing", [b"Content-Length: 100\r\n", b"Transfer-Encoding: chunked\r\n"], ids=("length", "chunked")
)


class Test2xx:
    """Unusual, and right."""

    def test_pipelined_requests_are_answered_in_order(self, server: Server, head: bytes) -> None:
        """Three in one packet: each has its own answer, in the order of the requests."""
        with RawConnection(server.port) as connection:
            targets = (b"/v1/pets?limit=1", b"/v1/nothing", b"/v1/pets?limit=0")
            connection.send(b"".join(b"GET %s HTTP/1.1\r\n%s\r\n" % (target, head) for target in targets))
            answers = [connection.read() for _ in targets]
            assert [answer.status for answer in answers] == [200, 404, 400]

    @pytest.mark.parametrize("pieces", [[5, 29], [1, 2, 3, 29], [29]])
    def test_a_chunked_body_is_one_body(self, server: Server, head: bytes, pieces: list[int]) -> None:
        """However it is cut."""
        before, chunks, start = count(server), b"", 0
        for stop in pieces:
            chunks += b"%x\r\n%s\r\n" % (stop - start, BODY[start:stop])
            start = stop
        answer = exchange(server.port, post(head, b"Transfer-Encoding: chunked\r\n"), chunks + b"0\r\n\r\n")
        assert (answer.status, answer.json()["name"]) == (201, "Rex")
        assert count(server) == before + 1

    def test_the_body_waits_for_100_continue(self, server: Server, head: bytes) -> None:
        """The server asks for it once the head has passed every check."""
        with RawConnection(server.port) as connection:
            connection.send(post(head, b"Expect: 100-continue\r\nContent-Length: %d\r\n" % len(BODY)))
            interim = connection.read()
            assert interim.status == 100
            connection.send(BODY)
            answer = connection.read()
            assert answer.status == 201

    @pytest.mark.parametrize(
        ("begin", "end", "status"),
        [
            (b"GET http://127.0.0.1/v1/pets?limit=1 HTTP/1.1\r\n", b"\r\n", 200),
            (b"GET /v1/pets HTTP/1.1\r\n", _UPGRADE + b"\r\n", 200),
            (b"POST /v1/pets HTTP/1.1\r\n", JSON + b"Content-Length: 29\r\n\r\n" + BODY, 201),
        ],
        ids=["absolute-form", "upgrade-to-websocket", "post"],
    )
    def test_one_byte_at_a_time(
        self, server: Server, head: bytes, begin: bytes, end: bytes, status: int
    ) -> None:
        """Slow, but within the deadline: also the target of a proxy's client (RFC 9112, 3.2.2), and a
        handshake for a WebSocket, which is a GET like any other."""
        answer = exchange(server.port, *(bytes([byte]) for byte in begin + head + end))
        assert answer.status == status

    def test_http_1_0(self, server: Server, head: bytes) -> None:
        """Answered, and the connection is closed after it."""
        with RawConnection(server.port) as connection:
            connection.send(b"GET /v1/pets?limit=1 HTTP/1.0\r\n" + head + b"\r\n")
            answer = connection.read()
            assert answer.status == 200
            assert connection.is_closed_by_server()

    def test_head_has_the_headers_of_get_and_no_body(self, server: Server, head: bytes) -> None:
        """Content-Length included; the next request on the connection is answered."""
        with RawConnection(server.port) as connection:
            connection.send(b"HEAD /v1/pets?limit=1 HTTP/1.1\r\n" + head + b"\r\n")
            connection.send(b"GET /v1/pets?limit=1 HTTP/1.1\r\n" + head + b"\r\n")
            without, whole = connection.read("HEAD"), connection.read()
            assert (without.status, without.body) == (200, b"")
            assert (
                without.headers["content-length"] == whole.headers["content-length"] == str(len(whole.body))
            )

    def test_a_body_on_get_is_skipped(self, server: Server, head: bytes) -> None:
        """What follows it on the connection is not mistaken for a request."""
        with RawConnection(server.port) as connection:
            connection.send(
                b"GET /v1/pets HTTP/1.1\r\n" + head + b"Content-Length: 22\r\n\r\nGET /evil HTTP/1.1\r\n\r\n"
            )
            connection.send(b"GET /v1/nothing HTTP/1.1\r\n" + head + b"\r\n")
            first, second = connection.read(), connection.read()
            assert (first.status, second.status) == (200, 404)


class TestTargets:
    """Which path, and which host, the bytes of a request line mean."""

    @pytest.mark.parametrize(
        "target", [b"/%6detrics", b"/%68ealthz", b"/docs%2Fdeprecation", b"/%76%31/pets"]
    )
    def test_paths_are_compared_as_they_were_sent(self, server: Server, target: bytes) -> None:
        """Outside /v1 as well: a proxy that withholds /metrics need not know how else it can be written."""
        answer = exchange(server.port, b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % target)
        assert (answer.status, answer.json()["code"]) == (404, "not_found")

    def test_the_host_of_an_absolute_target_counts_where_there_is_no_other(self, server: Server) -> None:
        """The HTTP server fills it in; without either of both a request is refused."""
        absolute = exchange(server.port, b"GET http://evil.example/metrics HTTP/1.1\r\n\r\n")
        assert absolute.status == 404
        neither = exchange(server.port, b"GET /v1/pets HTTP/1.1\r\n\r\n")
        assert_error(neither, 400, "invalid_header")


class Test4xx:
    """Refused by the application: with an Error, the limits' headers, and nothing stored."""

    @pytest.fixture(autouse=True)
    def _unchanged(self, server: Server, head: bytes) -> Iterator[None]:
        before = count(server)
        yield
        assert count(server) == before

    @pytest.mark.parametrize(
        "chunks",
        [
            b"5\r\n" + BODY[:5] + b"\r\nzz\r\n" + BODY[5:] + b"\r\n0\r\n\r\n",
            b"5\r\n" + BODY + b"\r\n0\r\n\r\n",
            b"-1\r\n" + BODY + b"\r\n0\r\n\r\n",
            b"fffffffffffffffff\r\n" + BODY + b"\r\n0\r\n\r\n",
            b"1d;x\ny\r\n" + BODY + b"\r\n0\r\n\r\n",
        ],
        ids=("no-size", "too-small-a-size", "negative-size", "huge-size", "bad-extension"),
    )
    def test_400_a_malformed_chunk(self, server: Server, head: bytes, chunks: bytes) -> None:
        """The body never became complete."""
        answer = exchange(server.port, post(head, b"Transfer-Encoding: chunked\r\n") + chunks, end=True)
        assert_error(answer, 400, "invalid_body")

    @_FRAMINGS
    def test_400_a_truncated_body(self, server: Server, head: bytes, framing: bytes) -> None:
        """The client ends in the middle: whole JSON so far, but not the whole body."""
        sent = BODY if framing.startswith(b"Content") else b"1d\r\n" + BODY + b"\r\n"
        assert_error(exchange(server.port, post(head, framing) + sent, end=True), 400, "invalid_body")

    @_FRAMINGS
    def test_408_a_stalled_body(self, server: Server, head: bytes, framing: bytes) -> None:
        """Nothing more comes: the deadline answers, and the connection is closed."""
        with RawConnection(server.port) as connection:
            connection.send(post(head, framing), b"1d\r\n" + BODY[:5])
            assert_error(connection.read(), 408, "request_timeout")
            assert connection.is_closed_by_server()

    @pytest.mark.parametrize(
        "lines",
        [
            b"",
            b"Host: a\r\nHost: b\r\n",
            b"Host: a\r\nHost: a\r\n",
            b"Host:\r\n",
            b"Host: a b\r\n",
            b"Host: http://a\r\n",
            b"Host: a/b\r\n",
        ],
        ids=("none", "two", "two-equal", "empty", "space", "scheme", "path"),
    )
    def test_400_without_one_good_host(self, server: Server, lines: bytes) -> None:
        """None, two, an empty one, no host at all (RFC 9112, 3.2)."""
        key = b"Authorization: Bearer %s\r\n" % server.key.encode()
        answer = exchange(server.port, b"GET /v1/pets HTTP/1.1\r\n" + lines + key + b"\r\n")
        assert_error(answer, 400, "invalid_header")

    @pytest.mark.parametrize(
        ("target", "lines", "status", "code"),
        [
            (b"/v1/pets?x=" + b"a" * 8_192, b"", 414, "uri_too_long"),
            (b"/v1/pets", b"X-Long: " + b"a" * 17_408 + b"\r\n", 431, "headers_too_large"),
            (b"/v1/pets", b"X-Long: " + b"a" * 61_440 + b"\r\n", 431, "headers_too_large"),
            (b"/v1/pets", b"".join(b"X: %s\r\n" % (b"a" * 200) for _ in range(90)), 431, "headers_too_large"),
        ],
        ids=("target-of-8-KiB", "line-of-17-KiB", "line-of-60-KiB", "ninety-lines"),
    )
    def test_a_head_that_is_refused(
        self, server: Server, head: bytes, target: bytes, lines: bytes, status: int, code: str
    ) -> None:
        """A target past 8 KiB; lines past 16 KiB together."""
        answer = exchange(server.port, b"GET %s HTTP/1.1\r\n%s%s\r\n" % (target, head, lines))
        assert_error(answer, status, code)

    def test_401_two_authorization_headers(self, server: Server, head: bytes) -> None:
        """Even when both have the same good key."""
        key = head.partition(b"\r\n")[2]
        answer = exchange(server.port, b"GET /v1/pets HTTP/1.1\r\n" + head + key + b"\r\n")
        assert_error(answer, 401, "unauthorized")

    def test_400_http_1_0_without_host(self, server: Server) -> None:
        """The same rule for everybody."""
        assert_error(exchange(server.port, b"GET /v1/pets HTTP/1.0\r\n\r\n"), 400, "invalid_header")

    @pytest.mark.parametrize(
        ("framing", "media_type", "status", "code"),
        [
            (b"Content-Length: 65537\r\n", JSON, 413, "payload_too_large"),
            (b"Content-Length: 29\r\n", b"", 415, "unsupported_media_type"),
        ],
    )
    def test_a_refused_head_does_not_ask_for_the_body(
        self, server: Server, head: bytes, framing: bytes, media_type: bytes, status: int, code: str
    ) -> None:
        """Expect: 100-continue is answered with the refusal at once."""
        with RawConnection(server.port) as connection:
            connection.send(post(head, b"Expect: 100-continue\r\n" + framing, media_type))
            assert_error(connection.read(), status, code)

    def test_413_a_chunked_body_that_grows_too_large(self, server: Server, head: bytes) -> None:
        """Refused at its 65,537th byte, not at its end, which never comes."""
        with RawConnection(server.port) as connection:
            connection.send(post(head, b"Transfer-Encoding: chunked\r\n"))
            connection.send(b"1000\r\n" + b" " * 4_096 + b"\r\n", b"10001\r\n" + b" " * 61_441)
            assert_error(connection.read(), 413, "payload_too_large")

    @pytest.mark.parametrize(
        "target",
        [
            b"/v1/pets/",
            b"//v1/pets",
            b"/v1//pets",
            b"/V1/pets",
            b"/v1/./pets",
            b"/v1/x/../pets",
            b"/v1/pet%73",
        ],
    )
    def test_404_paths_are_exact(self, server: Server, head: bytes, target: bytes) -> None:
        """Nothing between the socket and the table of operations straightens a path out."""
        answer = exchange(server.port, b"GET " + target + b" HTTP/1.1\r\n" + head + b"\r\n")
        assert (answer.status, answer.json()["code"]) == (404, "not_found")

    def test_a_reset_in_the_middle_of_a_body_stores_nothing(self, server: Server, head: bytes) -> None:
        """At every byte of it."""
        for cut in range(len(BODY)):
            connection = RawConnection(server.port)
            connection.send(post(head, b"Content-Length: %d\r\n" % len(BODY)) + BODY[:cut])
            connection.reset()


class TestServersOwn:
    """What the HTTP server refuses by itself, before the application sees a request: without an Error."""

    @pytest.mark.parametrize(
        ("lines", "status"),
        [
            (b"GET /v1/pets HTTP/1.1\r\n" + b"X: a\r\n" * 101 + b"\r\n", 431),
            (b"GET /v1/pets HTTP/1.1\r\nX-Long: " + b"a" * 2_000_000 + b"\r\n\r\n", 431),
            (b"GET /v1/pets HTTP/2.0\r\n\r\n", 400),
            (b"GET /v1/pets HTTP/1.1\r\nX-A : b\r\n\r\n", 400),
            (b"GET /v1/pets HTTP/1.1\r\nX-A: b\r\n c\r\n\r\n", 400),
            (b"GET /v1/pets HTTP/1.1\r\nX-A: b\0c\r\n\r\n", 400),
            (b"GET /v1/pets HTTP/1.1\r\nX-A: b\rc\r\n\r\n", 400),
            (b"GET  /v1/pets HTTP/1.1\r\n\r\n", 400),
            (b"POST /v1/pets HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", 400),
            (b"POST /v1/pets HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
            (b"POST /v1/pets HTTP/1.1\r\nContent-Length: +1\r\n\r\n1", 400),
            (b"POST /v1/pets HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n1", 400),
            (b"POST /v1/pets HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
            (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400),
        ],
        ids=(
            "101-header-lines",
            "head-of-2-MB",
            "http-2",
            "space-before-colon",
            "folded-line",
            "nul",
            "lone-cr",
            "two-spaces",
            "two-lengths",
            "negative-length",
            "signed-length",
            "list-of-lengths",
            "unknown-transfer-coding",
            "tls",
        ),
    )
    def test_bytes_that_are_not_http(self, server: Server, lines: bytes, status: int) -> None:
        """Refused and closed; good clients do not notice."""
        with RawConnection(server.port) as connection:
            try:
                connection.send(lines)
            except (BrokenPipeError, ConnectionResetError):
                pass
            else:
                answer = connection.read()
                assert (answer.status, answer.body) == (status, b"")
                assert connection.is_closed_by_server()
        assert server.request("GET", "/v1/pets?limit=1").status == 200

    def test_length_and_chunks_at_once_end_the_connection(self, server: Server, head: bytes) -> None:
        """The chunks count, and nothing that follows is read as a request (RFC 9112, 6.3)."""
        with RawConnection(server.port) as connection:
            framing = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
            connection.send(post(head, framing) + b"0\r\n\r\nGET /v1/pets HTTP/1.1\r\n" + head + b"\r\n")
            assert_error(connection.read(), 400, "invalid_json")
            assert connection.is_closed_by_server()

    def test_a_stalled_head_is_given_up(self, server: Server, stalled_head: RawConnection) -> None:
        """After 10 s; the connection was opened when this module began."""
        assert stalled_head.is_closed_by_server()
