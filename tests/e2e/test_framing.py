"""Bytes on a socket, from the real server to the store and back; tests/http and tests/api have every form."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from itertools import islice

import pytest

from tests.support.raw import RawAnswer, RawConnection, exchange
from tests.support.refusals import CLIENTS, GOOD, Outcomes, Refusal, refusals
from tests.support.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-framing")]

BODY = b'{"name":"Rex","categoryId":1}'
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LENGTH = b"Content-Length: %d\r\n"
LIMITS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "x-request-id"}


@pytest.fixture(scope="module")
def head(server: Server) -> bytes:
    """Host and key."""
    return b"Host: 127.0.0.1\r\nAuthorization: Bearer %s\r\n" % server.key.encode()


def count(server: Server) -> int:
    """How many animals there are: the identifiers are 1, 2, 3 …"""
    ids = "&".join(f"id={n}" for n in range(1, 101))
    return len(server.request("GET", f"/v1/pets?limit=100&{ids}").json())


def get(lines: bytes, target: bytes = b"/v1/pets?limit=1") -> bytes:
    """A GET with these header lines."""
    return b"GET %s HTTP/1.1\r\n%s\r\n" % (target, lines)


def post(lines: bytes) -> bytes:
    """The head of a POST."""
    return b"POST /v1/pets HTTP/1.1\r\nContent-Type: application/json\r\n%s\r\n" % lines


def assert_error(answer: RawAnswer, status: int, code: str) -> None:
    """The Error body."""
    assert answer.json() == {"code": code, "message": answer.json()["message"], "status": status}
    assert answer.status == status


def test_requests_in_one_packet_are_answered_in_order(server: Server, head: bytes) -> None:
    """Each has its own answer. A body on GET is skipped, and not mistaken for a request; HEAD has the headers
    of GET, Content-Length included, and no body."""
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


def test_chunks_wait_for_100_continue(server: Server, head: bytes) -> None:
    """The server asks for them once the head has passed every check; two pieces are one body."""
    before = count(server)
    with RawConnection(server.port) as connection:
        connection.send(post(head + b"Expect: 100-continue\r\n" + CHUNKED))
        assert connection.read().status == 100
        connection.send(b"5\r\n" + BODY[:5], b"\r\n18\r\n" + BODY[5:] + b"\r\n0\r\n\r\n")
        assert connection.read().json()["name"] == "Rex"
    assert count(server) == before + 1


@pytest.mark.parametrize(
    ("lines", "sent", "status", "code"),
    [
        pytest.param(CHUNKED, b"5\r\n" + BODY + b"\r\n0\r\n\r\n", 400, "invalid_body", id="bad-chunk"),
        pytest.param(CHUNKED, b"1d\r\n" + BODY + b"\r\n", 400, "invalid_body", id="no-last-chunk"),
        pytest.param(LENGTH % 100, BODY, 400, "invalid_body", id="too-short"),
        pytest.param(b"Host: a\r\n" + LENGTH % 29, BODY, 400, "invalid_header", id="two-hosts"),
        pytest.param(
            b"X: " + b"a" * 60 * 1_024 + b"\r\n" + LENGTH % 29, BODY, 431, "headers_too_large", id="head"
        ),
        # Refused at its 65,537th byte, not at its end, which never comes.
        pytest.param(CHUNKED, b"10001\r\n" + b" " * 65_537, 413, "payload_too_large", id="too-large"),
    ],
)
def test_a_body_that_never_becomes_a_good_one(
    server: Server, head: bytes, lines: bytes, sent: bytes, status: int, code: str
) -> None:
    """The application refuses it with an Error and the headers of limits, and stores nothing."""
    before = count(server)
    answer = exchange(server.port, post(head + lines) + sent, end=True)
    assert_error(answer, status, code)
    assert set(answer.headers) >= LIMITS
    assert count(server) == before


def test_a_stalled_body_ends_its_connection(server: Server, head: bytes) -> None:
    """A body that stalls is answered with 408 at the deadline for bodies, and its connection is closed."""
    with RawConnection(server.port) as connection:
        connection.send(post(head + CHUNKED), b"1d\r\n" + BODY[:5])
        assert_error(connection.read(), 408, "request_timeout")
        assert connection.is_closed_by_server()


def test_a_reset_in_the_middle_of_a_body_stores_nothing(server: Server, head: bytes) -> None:
    """A connection that is reset at any byte of its request's body stores nothing."""
    before = count(server)
    for cut in range(len(BODY)):
        connection = RawConnection(server.port)
        connection.send(post(head + LENGTH % len(BODY)) + BODY[:cut])
        connection.reset()
    assert count(server) == before


@pytest.mark.parametrize(
    "target", [b"/%6detrics", b"/%68ealthz", b"/docs%2Fdeprecation", b"http://evil.example/metrics"]
)
def test_paths_and_hosts_are_compared_as_they_were_sent(server: Server, target: bytes) -> None:
    """Outside /v1 as well: a proxy that withholds /metrics need not know how else it can be written."""
    assert_error(exchange(server.port, get(b"Host: evil.example\r\n", target)), 404, "not_found")


@pytest.mark.parametrize("client", CLIENTS)
def test_after_a_refusal_the_connection_goes_on_or_its_end_was_announced(
    server: Server, client: Callable[[int, list[Refusal], float], Outcomes]
) -> None:
    """Whichever library sends head and body apart; `make torture ARGS=refusals` sends 400 a round."""
    asked = list(islice(refusals(server.key, random.Random(1)), 20))
    assert set(client(server.port, asked, 0.001)) <= GOOD


def test_bytes_that_are_not_http(server: Server) -> None:
    """The HTTP server itself refuses a head of 2 MB with an Error and closes; good clients do not notice."""
    with RawConnection(server.port) as connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.send(get(b"X-Long: " + b"a" * 2_000_000 + b"\r\n"))
        assert_error(connection.read(), 431, "headers_too_large")
        assert connection.is_closed_by_server()
    assert server.request("GET", "/v1/pets?limit=1").status == 200
