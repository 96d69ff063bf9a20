"""deploy/nginx.conf in a real nginx, before replicas that answer, end early, or are not there."""

from __future__ import annotations

import http.client
import json
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import folder
from tests.support.postgres import absent
from tests.support.raw import RawConnection
from tests.support.server import Response, free_port
from tests.support.waiting import wait_for
from tools.cluster import programs
from tools.cluster.parts import Nginx, answers

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-nginx")]

POST_HEADERS = {"Content-Type": "application/json"}


class Replica(socketserver.ThreadingTCPServer):
    """Counts what it is sent. `ends_early`: reads a request whole, and closes instead of answering."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.ends_early = False
        self.seen: list[tuple[str, str, dict[str, str], int]] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Replica

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path != "/healthz":
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.server.seen.append((self.command, self.path, headers, len(body)))
            if self.server.ends_early:
                self.close_connection = True
                return
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = _answer  # noqa: N815  http.server's names

    def log_message(self, *_: Any) -> None:
        """Nothing."""


class Front:
    """nginx, and the two replicas behind it."""

    def __init__(self, port: int, replicas: list[Replica]) -> None:
        self.port = port
        self.replicas = replicas

    @property
    def seen(self) -> list[tuple[str, str, dict[str, str], int]]:
        return [each for replica in self.replicas for each in replica.seen]

    def ask(
        self, method: str, target: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Response:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, target, body, headers or {})
            answer = connection.getresponse()
            return Response(answer, answer.read())
        finally:
            connection.close()


@contextmanager
def nginx_before(ports: tuple[int, int]) -> Iterator[int]:
    program = programs.system_nginx()
    if program is None:
        absent("nginx")
    assert program is not None
    with folder() as path:
        nginx = Nginx(Path(program), path, free_port(), ports)
        nginx.launch()
        wait_for(lambda: is_open(nginx.port), "nginx")
        try:
            yield nginx.port
        finally:
            nginx.stop()


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def front() -> Iterator[Front]:
    replicas = [Replica(), Replica()]
    with nginx_before((replicas[0].port, replicas[1].port)) as port:
        assert answers(port, "/healthz")
        yield Front(port, replicas)
    for replica in replicas:
        replica.close()


class TestOnceOrTwice:
    """What nginx repeats when a replica ends before it has answered."""

    def test_a_post_is_sent_once(self, front: Front) -> None:
        """It may have been carried out: 503 in the documented form, and no replica sees it again."""
        for replica in front.replicas:
            replica.ends_early = True
        answer = front.ask("POST", "/v1/pets", b"{}", POST_HEADERS)
        assert answer.status == 503
        assert answer.json()["code"] == "unavailable"
        assert answer.headers["retry-after"] == "1"
        assert len(front.seen) == 1

    @pytest.mark.parametrize("value", ["0", "a", '"8e03978e-40d5-43dd-bc93-6894a57f9324"'])
    def test_a_post_with_an_idempotency_key_goes_to_the_other_replica(self, front: Front, value: str) -> None:
        """Which recognises it, should the first one have carried it out; the body is sent whole again."""
        front.replicas[0].ends_early = True
        for _ in range(2):  # whichever is asked first
            answer = front.ask("POST", "/v1/pets", b"{12}", POST_HEADERS | {"Idempotency-Key": value})
            assert answer.status == 200
        assert {(method, size) for method, _, _, size in front.seen} == {("POST", 4)}
        assert {headers["idempotency-key"] for _, _, headers, _ in front.seen} == {value}
        assert len(front.replicas[0].seen) == 1

    def test_a_get_goes_to_the_other_replica(self, front: Front) -> None:
        """Whatever happened to it, it changed nothing."""
        front.replicas[0].ends_early = True
        assert [front.ask("GET", "/v1/pets").status for _ in range(4)] == [200] * 4

    def test_a_post_that_was_not_sent_is_no_repetition(self, front: Front) -> None:
        """A replica that is not there refuses the connection: the other one gets the POST."""
        front.replicas[0].close()
        for _ in range(4):
            assert front.ask("POST", "/v1/pets", b"{}", POST_HEADERS).status == 200
        assert len(front.seen) == 4

    def test_without_a_replica_the_answer_has_the_documented_form(self) -> None:
        """503 `unavailable` at once, and each request asks both again, however often they failed."""
        with nginx_before((free_port(), free_port())) as port:
            for _ in range(3):
                answer = Front(port, []).ask("GET", "/v1/pets")
                assert (answer.status, answer.json()["status"]) == (503, 503)
                assert answer.headers["content-type"] == "application/json"

    def test_a_replica_that_comes_back_is_asked_at_once_when_there_is_no_other(self, front: Front) -> None:
        """Left alone for five seconds is not left alone for good."""
        for replica in front.replicas:
            replica.ends_early = True
        assert {front.ask("GET", "/v1/pets").status for _ in range(3)} == {503}
        front.replicas[1].ends_early = False
        assert front.ask("GET", "/v1/pets").status == 200


class TestWhatArrives:
    """A request reaches the service as it was sent."""

    @pytest.mark.parametrize(
        "target", ["/v1//pets", "/v1/pets/%31", "/v1/pets/../x", "/v1/pets?a=%2F&&b", "/V1"]
    )
    @pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "a"}], ids=["plain", "repeatable"])
    def test_the_target(self, front: Front, target: str, headers: dict[str, str]) -> None:
        """Not decoded, not normalised: the service answers for it."""
        front.ask("POST", target, b"{}", POST_HEADERS | headers)
        assert [path for _, path, _, _ in front.seen] == [target]

    def test_the_client_is_who_it_is(self, front: Front) -> None:
        """X-Forwarded-For is what nginx knows, and not what a client claims; the rest passes."""
        claims = {"X-Forwarded-For": "192.0.2.1", "X-Request-Id": "mine", "Authorization": "Bearer x"}
        front.ask("GET", "/v1/pets", None, claims | {"Host": "api.example.com"})
        (_, _, headers, _) = front.seen[0]
        assert headers["x-forwarded-for"] == "127.0.0.1"
        assert headers["host"] == "api.example.com"
        assert (headers["x-request-id"], headers["authorization"]) == ("mine", "Bearer x")
        assert "connection" not in headers

    @pytest.mark.parametrize("path", ["/metrics", "/readyz", "/%6detrics", "/x/../metrics", "/metrics?x"])
    def test_what_watches_the_service_is_not_public(self, front: Front, path: str) -> None:
        """404, and no replica is asked."""
        answer = front.ask("GET", path)
        assert (answer.status, answer.json()["code"]) == (404, "not_found")
        assert front.seen == []


class TestSizes:
    """The service's own limits come first, so that its answers are the documented ones."""

    def test_what_the_service_refuses_reaches_it(self, front: Front) -> None:
        """A body a little above 64 KiB, a target above 8 KiB, a head above 16 KiB."""
        front.ask("POST", "/v1/pets", bytes(66_000), POST_HEADERS)
        front.ask("GET", "/v1/pets?" + "a" * 8_300)
        front.ask("GET", "/v1/pets", None, {"X-One": "a" * 12_000, "X-Two": "a" * 8_000})
        assert sorted(size for _, _, _, size in front.seen) == [0, 0, 66_000]

    def test_a_far_larger_body_is_refused_in_the_documented_form(self, front: Front) -> None:
        """413 as an Error, before it is read."""
        connection = RawConnection(front.port)
        connection.send(b"POST /v1/pets HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n")
        answer = connection.read()
        connection.close()
        assert answer is not None
        assert answer.status == 413
        assert json.loads(answer.body)["code"] == "payload_too_large"
        assert front.seen == []
