"""deploy/nginx in a real nginx: what it repeats, passes on, refuses and writes down."""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path

import pytest

from petstore.core.durations import parse_duration
from petstore.core.events import WAIT_MAX_SECONDS
from tests.deploy.files import DEPLOY, SITE, STAGING
from tests.deploy.fronts import Front, Replica, nginx_before, running_front
from tests.support import machine
from tests.support.cases import every_case
from tests.support.raw import RawConnection, exchange
from tests.support.waiting import wait_for
from tools.servers.nginx import child_of
from tools.servers.ports import free_port, is_free

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-nginx")]

POST_HEADERS = {"Content-Type": "application/json"}
WAIT = b"GET /v1/events?wait=120 HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def front() -> Iterator[Front]:
    with running_front() as running:
        yield running


class TestOnceOrTwice:
    """What nginx repeats when a replica ends before it has answered."""

    def test_a_post_is_sent_once(self, front: Front) -> None:
        """It may have been carried out: 503 in the documented form, and no replica sees it again."""
        for replica in front.replicas:
            replica.ends_early = True
        answer = front.ask("POST", "/v1/pets", b"{}", POST_HEADERS)
        assert answer.status == 503
        assert answer.json()["code"] == "outcome_unknown"
        assert answer.headers["retry-after"] == "1"
        assert len(front.seen) == 1

    @pytest.mark.parametrize("value", ["0", '"8e03978e-40d5-43dd-bc93-6894a57f9324"'])
    def test_a_post_with_an_idempotency_key_goes_to_the_other_replica(self, front: Front, value: str) -> None:
        """That one recognises it, should the first have carried it out; the body is sent whole again."""
        front.replicas[0].ends_early = True
        for _ in range(2):  # whichever is asked first
            answer = front.ask("POST", "/v1/pets", b"{12}", POST_HEADERS | {"Idempotency-Key": value})
            assert answer.status == 200
        assert {(method, size) for method, _, _, size in front.seen} == {("POST", 4)}
        assert {headers["idempotency-key"] for _, _, headers, _ in front.seen} == {value}
        assert front.replicas[0].seen  # perhaps twice: each process of nginx finds out by itself

    @pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
    def test_what_may_come_twice_goes_to_the_other_replica(self, front: Front, method: str) -> None:
        """A GET changed nothing. After a PATCH the second one finds what the first one changed; a removal
        that took place is a 404. The body is sent whole again."""
        front.replicas[0].ends_early = True
        answers = [front.ask(method, "/v1/pets/1", b"{12}", POST_HEADERS) for _ in range(4)]
        assert [answer.status for answer in answers] == [200] * 4
        assert {(method, size) for method, _, _, size in front.seen} == {(method, 4)}
        assert front.replicas[0].seen  # perhaps twice: each process of nginx finds out by itself

    @pytest.mark.parametrize("method", ["PATCH", "DELETE"])
    def test_what_has_if_match_is_sent_once(self, front: Front, method: str) -> None:
        """The first replica may have changed the tag: the other one would refuse what took place."""
        for replica in front.replicas:
            replica.ends_early = True
        answer = front.ask(method, "/v1/store/orders/1", b"{}", POST_HEADERS | {"If-Match": '"a"'})
        assert answer.status == 503
        assert len(front.seen) == 1

    def test_a_post_that_was_not_sent_is_no_repetition(self, front: Front) -> None:
        """A replica that is not there refuses the connection: the other one gets the POST."""
        front.replicas[0].close()
        for _ in range(4):
            assert front.ask("POST", "/v1/pets", b"{}", POST_HEADERS).status == 200
        assert len(front.seen) == 4

    def test_without_a_replica_the_answer_has_the_documented_form(self) -> None:
        """503 `unavailable` at once, and each request asks both again, however often they failed."""
        with nginx_before((free_port(), free_port())) as nginx:
            for _ in range(3):
                answer = Front(nginx.port, [], nginx.access_log).ask("GET", "/v1/pets")
                assert (answer.status, answer.json()["code"]) == (503, "unavailable")
                assert answer.headers["content-type"] == "application/json"

    def test_a_replica_that_comes_back_is_asked_at_once_when_there_is_no_other(self, front: Front) -> None:
        """Left alone for five seconds is not left alone for good."""
        for replica in front.replicas:
            replica.ends_early = True
        assert {front.ask("GET", "/v1/pets").status for _ in range(3)} == {503}
        front.replicas[1].ends_early = False
        assert front.ask("GET", "/v1/pets").status == 200


class TestWaits:
    """GET /v1/events, which may wait."""

    def test_a_wait_is_never_cut_off(self) -> None:
        """nginx has more patience than a request may ask for; it knows no other location for events."""
        text = (DEPLOY / "nginx" / "server.conf").read_text(encoding="utf-8")
        (place,) = re.findall(r"^location [^{]*/v1/events.*?^}", text, re.M | re.S)
        (patience,) = re.findall(r"proxy_read_timeout (\w+);", place)
        assert parse_duration(patience) / 1_000 > WAIT_MAX_SECONDS + 10

    def test_what_has_waited_is_not_repeated(self, front: Front) -> None:
        """A replica that ends meanwhile is a 503: the other one is not asked to wait anew."""
        for replica in front.replicas:
            replica.answers.clear()
        with RawConnection(front.port) as waiting:
            waiting.send(WAIT)
            wait_for(lambda: len(front.seen) == 1, "the request to reach a replica")
            began = time.monotonic()
            wait_for(lambda: time.monotonic() - began > 1.1, "a wait that does not fail at once")
            for replica in front.replicas:
                replica.ends_early = True
                replica.answers.set()
            answer = waiting.read()
        assert (answer.status, answer.json()["code"]) == (503, "unavailable")
        assert len(front.seen) == 1

    @pytest.mark.parametrize("is_there", [True, False])
    def test_what_fails_at_once_goes_to_the_other_replica(self, front: Front, is_there: bool) -> None:
        """One that stops, or is not there: a restart fails no request."""
        if is_there:
            front.replicas[0].ends_early = True
        else:
            front.replicas[0].close()
        assert [front.ask("GET", "/v1/events?wait=1").status for _ in range(4)] == [200] * 4

    def test_they_take_no_place_of_other_requests(self, front: Front) -> None:
        """A hundred of an address may wait while it makes others; one more is 429 in the documented form."""
        for replica in front.replicas:
            replica.answers.clear()
        waiting = [RawConnection(front.port) for _ in range(101)]
        for connection in waiting[1:]:
            connection.send(WAIT)
        wait_for(lambda: len(front.seen) == 100, "a hundred waits to reach the replicas")
        assert front.ask("GET", "/v1/events?wait=1").json()["code"] == "rate_limited"
        waiting[0].send(b"GET /v1/pets HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: len(front.seen) == 101, "another request to reach them")
        for replica in front.replicas:
            replica.answers.set()
        for connection in waiting:
            assert connection.read().status == 200
            connection.close()


class TestWhatArrives:
    """A request reaches the service as it was sent."""

    def test_the_target_arrives_as_it_was_sent(self, front: Front) -> None:
        """nginx neither decodes nor normalises a target, repeatable or not: the service answers for it."""
        for target in ("/v1//pets", "/v1/pets/%31", "/v1/pets/../x", "/v1/pets?a=%2F&&b", "/V1"):
            for headers in ({}, {"Idempotency-Key": "a"}):
                front.ask("POST", target, b"{}", POST_HEADERS | headers)
                assert [path for _, path, _, _ in front.seen] == [target]
                for replica in front.replicas:
                    replica.seen.clear()

    def test_the_client_is_who_it_is(self, front: Front) -> None:
        """X-Forwarded-For is what nginx knows, and not what a client claims; the rest passes."""
        claims = {"X-Forwarded-For": "192.0.2.1", "X-Request-Id": "mine", "Authorization": "Bearer x"}
        front.ask("GET", "/v1/pets", None, claims | {"Host": "api.example.com"})
        (_, _, headers, _) = front.seen[0]
        assert headers["x-forwarded-for"] == "127.0.0.1"
        assert headers["host"] == "api.example.com"
        assert (headers["x-request-id"], headers["authorization"]) == ("mine", "Bearer x")
        assert "connection" not in headers

    @every_case("path", ["/metrics", "/readyz", "/%6detrics", "/x/../metrics", "/metrics?x"])
    def test_what_watches_the_service_is_not_public(self, front: Front, path: str) -> None:
        """404, and no replica is asked."""
        answer = front.ask("GET", path)
        assert (answer.status, answer.json()["code"]) == (404, "not_found")
        assert front.seen == []

    def test_staging_has_names_of_its_own(self, front: Front) -> None:
        """The answer is 503 where it does not run; production never sees the request."""
        answer = front.ask("GET", "/v1/pets", None, {"Host": "staging.example.com"})
        assert (answer.status, answer.json()["code"]) == (503, "unavailable")
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
        head = b"POST /v1/pets HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n"
        answer = exchange(front.port, head)
        assert (answer.status, answer.json()["code"]) == (413, "payload_too_large")
        assert front.seen == []

    @every_case(
        ("target", "lines", "status", "code"),
        [
            ("?" + "a" * 17_000, "", 414, "uri_too_long"),
            ("", f"Cookie: {'a' * 17_000}\r\n", 431, "headers_too_large"),
            ("", f"X-A: {'a' * 9_000}\r\n" * 8, 431, "headers_too_large"),
        ],
    )
    def test_a_far_larger_head_is_too(
        self, front: Front, target: str, lines: str, status: int, code: str
    ) -> None:
        """One line above nginx's buffer, such as a cookie, and many."""
        answer = exchange(front.port, f"GET /v1/pets{target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n".encode())
        assert (answer.status, answer.json()["code"], answer.json()["status"]) == (status, code, status)
        assert front.seen == []

    @every_case(
        "head",
        [
            "GET /v1/pets HTTP/1.1\r\n",
            "GET /v1/pets HTTP/1.1\r\nHost: a\r\nHost: b\r\n",
            "GET /v1/pets/%zz HTTP/1.1\r\nHost: a\r\n",
            "get /v1/pets HTTP/1.1\r\nHost: a\r\n",
            "TRACE /v1/pets HTTP/1.1\r\nHost: a\r\n",
            "POST /v1/pets HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n",
            "GET /v1/pets HTTP/2.0\r\nHost: a\r\n",
        ],
    )
    def test_what_nginx_can_not_read_is_a_documented_error(self, front: Front, head: str) -> None:
        """It never reaches the service, and is an Error for a program all the same."""
        answer = exchange(front.port, f"{head}\r\n".encode())
        assert answer.status == answer.json()["status"] == 400
        assert answer.json()["code"] == "invalid_request"
        assert front.seen == []

    def test_a_stock_list_of_the_console_passes(self, front: Front) -> None:
        """The service bounds it, and reads it as it arrives."""
        front.ask("POST", "/console/stock", bytes(300_000), POST_HEADERS)
        assert [size for _, _, _, size in front.seen] == [300_000]

    def test_an_address_has_a_hundred_requests_at_the_same_time(self, front: Front) -> None:
        """One more is 429 in the documented form at once, and there is room again after an answer."""
        for replica in front.replicas:
            replica.answers.clear()
        waiting = [RawConnection(front.port) for _ in range(100)]
        for connection in waiting:
            connection.send(b"GET /v1/pets HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: len(front.seen) == 100, "a hundred requests to reach the replicas")
        refused = front.ask("GET", "/v1/pets")
        assert (refused.status, refused.json()["code"]) == (429, "rate_limited")
        assert refused.headers["retry-after"] == "1"
        for replica in front.replicas:
            replica.answers.set()
        for connection in waiting:
            assert connection.read().status == 200
            connection.close()
        assert front.ask("GET", "/v1/pets").status == 200


class TestAccessLog:
    """One line of JSON for each request."""

    def test_a_request_is_found_by_its_id(self, front: Front) -> None:
        """Who asked for what, the outcome, and the request id of the service's own log."""
        front.ask("GET", "/v1/pets", None, {"User-Agent": 'a "quoted" one'})
        wait_for(lambda: "/v1/pets" in front.log.read_text(), "the line")
        (text,) = [line for line in front.log.read_text().splitlines() if "/v1/pets" in line]
        line = json.loads(text)
        assert (line["client"], line["method"], line["path"]) == ("127.0.0.1", "GET", "/v1/pets")
        assert (line["status"], line["upstream_status"]) == (200, "200")
        assert (line["request_id"], line["agent"]) == ("the-id", 'a "quoted" one')
        assert line["seconds"] >= 0

    def test_no_secret_is_written(self, front: Front) -> None:
        """nginx logs no secret: neither the Authorization header, nor a key in the query, nor a console link,
        by which a reader chooses a person's password, nor a contact's link; also below a path prefix."""
        for prefix in ("", "/pets"):
            front.ask("GET", f"{prefix}/console/link/Secret?a", None, {})
            front.ask("POST", f"{prefix}/notifications/Secret?off=a", None, {})
        front.ask(
            "GET", "/v1/pets?api_key=pets_live_Secret", None, {"Authorization": "Bearer pets_live_Secret"}
        )
        wait_for(lambda: "/v1/pets" in front.log.read_text(), "the line")
        assert "Secret" not in front.log.read_text()
        for path in ("/pets/console/link/...", "/pets/notifications/..."):
            assert f'"path":"{path}"' in front.log.read_text()

    def test_no_secret_is_written_of_what_fails(self) -> None:
        """A link that reached no replica is still good, and nginx's log of errors would quote it. The line of
        the request says which replicas failed, and how."""
        with nginx_before((free_port(), free_port())) as nginx:
            front = Front(nginx.port, [], nginx.access_log)
            assert front.ask("GET", "/console/link/Secret").status == 503
            wait_for(lambda: "/console/link/..." in nginx.access_log.read_text(), "the line")
            line = json.loads(nginx.access_log.read_text().splitlines()[-1])
            assert {*line["upstream_status"].split(", ")} == {"502"}
            assert len(line["upstream"].split(", ")) == 4
            written = [path for path in nginx.access_log.parent.parent.rglob("*") if path.is_file()]
            assert {"error.log", "nginx.log"} <= {path.name for path in written}
            assert [path.name for path in written if b"Secret" in path.read_bytes()] == []


class TestOnAHost:
    """deploy/nginx/site.conf, included by the nginx.conf of a host, with a certificate of the test."""

    @pytest.fixture
    def site(self) -> Iterator[Front]:
        """nginx with TLS before production and staging."""
        program = machine.program("nginx")
        port, replica, staging = free_port(), Replica(), Replica()
        with machine.folder() as path:
            (path / "nginx.conf").write_text(_main(path))
            (path / "petstore.conf").write_text(_placed(SITE, path, port, replica.port))
            (path / "petstore.staging.conf").write_text(_placed(STAGING, path, port, staging.port))
            child = child_of(program, path, path / "log")
            child.start()
            try:
                child.wait_until(lambda: not is_free(port))
                yield Front(port, [replica, staging], path / "access.log")
            finally:
                child.stop()
                replica.close()
                staging.close()

    def ask(self, site: Front, target: str, host: str = "api.example.com") -> tuple[int, dict[str, str]]:
        """A GET over TLS with the certificate checked: status and headers."""
        trusting = ssl.create_default_context(cafile=site.log.parent / "fullchain.pem")
        trusting.check_hostname = False
        connection = HTTPSConnection("127.0.0.1", site.port, timeout=20, context=trusting)
        try:
            connection.request("GET", target, headers={"Host": host})
            answer = connection.getresponse()
            answer.read()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()

    def test_it_serves_with_tls(self, site: Front) -> None:
        """The request reaches the service as it does in the cluster."""
        status, _ = self.ask(site, "/v1//pets?a=%2F")
        assert status == 200
        ((_, path, headers, _),) = site.seen
        assert (path, headers["x-forwarded-for"]) == ("/v1//pets?a=%2F", "127.0.0.1")

    def test_each_name_leads_to_its_service(self, site: Front) -> None:
        """Staging's to staging, every other one to production."""
        for host in ("staging.example.com", "api.example.com", "shop.example.com"):
            assert self.ask(site, "/v1/pets", host)[0] == 200
        seen = [[headers["host"] for _, _, headers, _ in each.seen] for each in site.replicas]
        assert seen == [["api.example.com", "shop.example.com"], ["staging.example.com"]]

    def test_browsers_are_told_to_stay_with_tls(self, site: Front) -> None:
        """Answers of the service and nginx's own answers have Strict-Transport-Security, for a year."""
        for target, expected in (("/v1/pets", 200), ("/metrics", 404)):
            status, headers = self.ask(site, target)
            assert (status, headers.get("strict-transport-security")) == (expected, "max-age=31536000")
        site.replicas[0].ends_early = True
        status, headers = self.ask(site, "/v1/pets")
        assert (status, headers.get("strict-transport-security")) == (503, "max-age=31536000")

    def test_a_request_without_tls_is_a_documented_error(self, site: Front) -> None:
        """The error says what is wrong; the service never sees the request."""
        answer = exchange(site.port, b"GET /v1/pets HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (answer.status, answer.json()["code"]) == (400, "invalid_request")
        assert "HTTPS" in answer.json()["message"]
        assert site.seen == []

    def test_without_tls_nothing_is_said_of_it(self, front: Front) -> None:
        """The header has no meaning there, and behind another proxy that one decides."""
        assert "strict-transport-security" not in front.ask("GET", "/v1/pets").headers


def _main(path: Path) -> str:
    """The part of a distribution's nginx.conf that matters: it includes what lies in a directory."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = " ".join(f"{kind}_temp_path {path}/{kind};" for kind in kinds)
    return f"pid {path}/pid;\nevents {{}}\nhttp {{\n{places}\ninclude {path}/petstore*.conf;\n}}\n"


def _placed(text: str, path: Path, port: int, upstream: int) -> str:
    """A site for this place: its port, its files, a new certificate, and this upstream."""
    machine.make_certificate(path / "fullchain.pem", path / "privkey.pem", "DNS:api.example.com")
    for name in ("http.conf", "server.conf"):
        shared = (DEPLOY / "nginx" / name).read_text(encoding="utf-8")
        (path / name).write_text(shared.replace("/var/log/nginx/", f"{path}/"))
    text = re.sub(r"/(opt/petstore/deploy/nginx|etc/ssl/\w+\.example\.com)/", f"{path}/", text)
    text = re.sub(r"^    listen \[::\].*\n", "", text, flags=re.M)
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}")
    return re.sub(r"server 127\.0\.0\.1:80[89]0;", f"server 127.0.0.1:{upstream};", text)
