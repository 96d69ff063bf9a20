"""Bytes on a socket: framing, heads and bodies as clients, and worse ones, send them."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from tests.support.raw import RawAnswer, RawConnection, exchange
from tests.support.refusals import CLIENTS, GOOD, Outcomes, Refusal, refusals
from tests.support.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-framing")]

BODY = b'{"name":"Rex","categoryId":1}'
JSON = b"Content-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LENGTH = b"Content-Length: %d\r\n"
UPGRADE = (
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
def auth(server: Server, stalled_head: RawConnection) -> bytes:
    """The line with the key."""
    return b"Authorization: Bearer %s\r\n" % server.key.encode()


@pytest.fixture(scope="module")
def head(auth: bytes) -> bytes:
    """Host and key."""
    return b"Host: 127.0.0.1\r\n" + auth


def count(server: Server) -> int:
    """How many animals there are: the identifiers are 1, 2, 3 …"""
    ids = "&".join(f"id={n}" for n in range(1, 101))
    return len(server.request("GET", f"/v1/pets?limit=100&{ids}").json())


def get(lines: bytes, target: bytes = b"/v1/pets?limit=1") -> bytes:
    """A GET with these header lines."""
    return b"GET %s HTTP/1.1\r\n%s\r\n" % (target, lines)


def post(head: bytes, framing: bytes, media_type: bytes = JSON) -> bytes:
    """The head of a POST."""
    return b"POST /v1/pets HTTP/1.1\r\n" + head + media_type + framing + b"\r\n"


def assert_error(answer: RawAnswer, status: int, code: str) -> None:
    """The Error body and the headers that every answer under /v1 has."""
    assert answer.json() == {"code": code, "message": answer.json()["message"], "status": status}
    assert answer.status == status
    assert set(answer.headers) >= LIMITS


class Test2xx:
    """Unusual, and right."""

    def test_requests_in_one_packet_are_answered_in_order(self, server: Server, head: bytes) -> None:
        """Each has its own answer. A body on GET is skipped, and not mistaken for a request; HEAD has the
        headers of GET, Content-Length included, and no body."""
        with_body = get(head + LENGTH % 22) + b"GET /evil HTTP/1.1\r\n\r\n"
        without = get(head).replace(b"GET", b"HEAD")
        with RawConnection(server.port) as connection:
            connection.send(get(head, b"/v1/nothing") + with_body + without + get(head) + get(b""))
            answers = [connection.read(method) for method in ("GET", "GET", "HEAD", "GET", "GET")]
        assert [answer.status for answer in answers] == [404, 200, 200, 200, 400]
        assert answers[2].body == b""
        assert answers[2].headers["content-length"] == str(len(answers[3].body))
        assert all("content-length" in answer.headers for answer in answers)
        assert not any("server" in answer.headers for answer in answers)

    @pytest.mark.parametrize("pieces", [[5, 29], [1, 2, 3, 29], [29]])
    def test_a_chunked_body_is_one_body(self, server: Server, head: bytes, pieces: list[int]) -> None:
        """However it is cut."""
        before, chunks, start = count(server), b"", 0
        for stop in pieces:
            chunks += b"%x\r\n%s\r\n" % (stop - start, BODY[start:stop])
            start = stop
        answer = exchange(server.port, post(head, CHUNKED), chunks + b"0\r\n\r\n")
        assert (answer.status, answer.json()["name"]) == (201, "Rex")
        assert count(server) == before + 1

    def test_one_byte_at_a_time(self, server: Server, head: bytes) -> None:
        """Slow, but within the deadline: a request like any other."""
        whole = post(head, LENGTH % len(BODY)) + BODY
        assert exchange(server.port, *(bytes([byte]) for byte in whole)).status == 201

    def test_the_body_waits_for_100_continue(self, server: Server, head: bytes) -> None:
        """The server asks for it once the head has passed every check."""
        with RawConnection(server.port) as connection:
            connection.send(post(head, b"Expect: 100-continue\r\n" + LENGTH % len(BODY)))
            assert connection.read().status == 100
            connection.send(BODY)
            assert connection.read().status == 201

    def test_forms_of_a_get(self, server: Server, head: bytes) -> None:
        """An absolute target, as a client behind a proxy sends it (RFC 9112, 3.2.2); a WebSocket handshake,
        which is a GET like any other; HTTP/1.0, after which the connection is closed."""
        absolute = get(head, b"http://127.0.0.1/v1/pets?limit=1")
        assert exchange(server.port, absolute).status == 200
        assert exchange(server.port, get(head + UPGRADE)).status == 200
        with RawConnection(server.port) as connection:
            connection.send(get(head).replace(b"HTTP/1.1", b"HTTP/1.0"))
            assert connection.read().status == 200
            assert connection.is_closed_by_server()


class Test4xx:
    """Refused by the application: with an Error, the limits' headers, and nothing stored."""

    @pytest.fixture(autouse=True)
    def _unchanged(self, server: Server, head: bytes) -> Iterator[None]:
        before = count(server)
        yield
        assert count(server) == before

    @pytest.mark.parametrize(
        ("framing", "sent"),
        [
            (CHUNKED, b"5\r\n" + BODY[:5] + b"\r\nzz\r\n" + BODY[5:] + b"\r\n0\r\n\r\n"),
            (CHUNKED, b"5\r\n" + BODY + b"\r\n0\r\n\r\n"),
            (CHUNKED, b"-1\r\n" + BODY + b"\r\n0\r\n\r\n"),
            (CHUNKED, b"fffffffffffffffff\r\n" + BODY + b"\r\n0\r\n\r\n"),
            (CHUNKED, b"1d;x\ny\r\n" + BODY + b"\r\n0\r\n\r\n"),
            (CHUNKED, b"1d\r\n" + BODY + b"\r\n"),
            (LENGTH % 100, BODY),
        ],
        ids=(
            *("no-size", "too-small-a-size", "negative-size", "huge-size", "bad-extension"),
            *("truncated-chunks", "truncated-length"),
        ),
    )
    def test_400_a_body_that_never_becomes_whole(
        self, server: Server, head: bytes, framing: bytes, sent: bytes
    ) -> None:
        """A malformed chunk, or an end in the middle, though what came so far is whole JSON."""
        assert_error(exchange(server.port, post(head, framing) + sent, end=True), 400, "invalid_body")

    @pytest.mark.parametrize("framing", [LENGTH % 100, CHUNKED], ids=("length", "chunked"))
    def test_408_a_stalled_body(self, server: Server, head: bytes, framing: bytes) -> None:
        """Nothing more comes: the deadline answers, and the connection is closed."""
        with RawConnection(server.port) as connection:
            connection.send(post(head, framing), b"1d\r\n" + BODY[:5])
            assert_error(connection.read(), 408, "request_timeout")
            assert connection.is_closed_by_server()

    @pytest.mark.parametrize(
        "lines",
        [
            *(b"", b"Host: a\r\nHost: b\r\n", b"Host: a\r\nHost: a\r\n", b"Host:\r\n"),
            *(b"Host: a b\r\n", b"Host: http://a\r\n", b"Host: a/b\r\n"),
        ],
        ids=("none", "two", "two-equal", "empty", "space", "scheme", "path"),
    )
    def test_400_without_one_good_host(self, server: Server, auth: bytes, lines: bytes) -> None:
        """None, two, an empty one, no host at all (RFC 9112, 3.2), with any version of HTTP."""
        for request in (get(lines + auth), get(lines + auth).replace(b"HTTP/1.1", b"HTTP/1.0")):
            assert_error(exchange(server.port, request), 400, "invalid_header")

    def test_401_two_authorization_headers(self, server: Server, head: bytes, auth: bytes) -> None:
        """Even when both have the same good key."""
        assert_error(exchange(server.port, get(head + auth)), 401, "unauthorized")

    @pytest.mark.parametrize(
        ("framing", "media_type", "status", "code"),
        [
            (LENGTH % 65_537, JSON, 413, "payload_too_large"),
            (LENGTH % 29, b"", 415, "unsupported_media_type"),
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
        chunks = b"1000\r\n" + b" " * 4_096 + b"\r\n", b"10001\r\n" + b" " * 61_441
        assert_error(exchange(server.port, post(head, CHUNKED), *chunks), 413, "payload_too_large")

    def test_414_a_long_target(self, server: Server, head: bytes) -> None:
        """Past 8 KiB."""
        assert_error(exchange(server.port, get(head, b"/v1/pets?x=" + b"a" * 8_192)), 414, "uri_too_long")

    @pytest.mark.parametrize(
        "lines",
        [
            b"X-Long: " + b"a" * 17 * 1_024 + b"\r\n",
            b"X-Long: " + b"a" * 60 * 1_024 + b"\r\n",
            b"".join(b"X-%d: %s\r\n" % (n, b"a" * 200) for n in range(90)),
        ],
        ids=("17-KiB", "60-KiB", "90-lines"),
    )
    def test_431_a_long_head(self, server: Server, head: bytes, lines: bytes) -> None:
        """Past 16 KiB in all its lines together the application answers, with an Error."""
        assert_error(exchange(server.port, get(head + lines)), 431, "headers_too_large")

    @pytest.mark.parametrize(
        "target",
        [
            *(b"/v1/pets/", b"//v1/pets", b"/v1//pets", b"/V1/pets", b"/v1/./pets", b"/v1/x/../pets"),
            *(b"/v1/pet%73", b"/%76%31/pets", b"/%6detrics", b"/%68ealthz", b"/docs%2Fdeprecation"),
        ],
    )
    def test_404_paths_are_compared_as_they_were_sent(
        self, server: Server, head: bytes, target: bytes
    ) -> None:
        """Nothing between the socket and the table of operations straightens a path out. Outside /v1 as
        well: a proxy that withholds /metrics need not know how else it can be written."""
        answer = exchange(server.port, get(head, target))
        assert (answer.status, answer.json()["code"]) == (404, "not_found")

    def test_404_the_host_of_an_absolute_target_counts(self, server: Server) -> None:
        """Where there is no other, the HTTP server fills it in."""
        assert exchange(server.port, get(b"", b"http://evil.example/metrics")).status == 404

    def test_a_reset_in_the_middle_of_a_body_stores_nothing(self, server: Server, head: bytes) -> None:
        """At every byte of it."""
        for cut in range(len(BODY)):
            connection = RawConnection(server.port)
            connection.send(post(head, LENGTH % len(BODY)) + BODY[:cut])
            connection.reset()


@pytest.mark.parametrize("client", CLIENTS)
def test_after_a_refusal_the_connection_goes_on_or_its_end_was_announced(
    server: Server, client: Callable[[int, list[Refusal], float], Outcomes]
) -> None:
    """Whichever library sends head and body apart; `make torture ARGS=refusals` sends 400 a round."""
    asked = list(islice(refusals(server.key, random.Random(1)), 20))
    assert set(client(server.port, asked, 0.001)) <= GOOD


class TestServersOwn:
    """What the HTTP server refuses before the application sees a request; tests/http has the rest."""

    @pytest.mark.parametrize(
        ("lines", "status", "code"),
        [
            (b"GET /v1/pets HTTP/1.1\r\nX-Long: " + b"a" * 2_000_000 + b"\r\n\r\n", 431, "headers_too_large"),
            (b"GET /v1/pets HTTP/2.0\r\n\r\n", 400, "invalid_request"),
        ],
        ids=("head-of-2-MB", "http-2"),
    )
    def test_bytes_that_are_not_http(self, server: Server, lines: bytes, status: int, code: str) -> None:
        """Refused with an Error and closed; good clients do not notice."""
        with (
            RawConnection(server.port) as connection,
            contextlib.suppress(BrokenPipeError, ConnectionResetError),
        ):
            connection.send(lines)
            answer = connection.read()
            assert (answer.status, answer.json()["code"]) == (status, code)
            assert connection.is_closed_by_server()
        assert server.request("GET", "/v1/pets?limit=1").status == 200

    def test_a_stalled_head_is_given_up(self, server: Server, stalled_head: RawConnection) -> None:
        """After 10 s; the connection was opened when this module began."""
        assert stalled_head.is_closed_by_server()
