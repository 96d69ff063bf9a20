"""What the real server writes: one line for each request, and never a key (I18)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from petstore import __version__
from petstore.core.keys import KEY_PATTERN
from tests.support.raw import exchange
from tests.support.server import Server, issue_key, running_server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-logs")]

FIELDS = {
    *("time", "level", "event", "request_id", "address", "account", "key", "operation", "method", "path"),
    *("status", "bytes", "ms", "worker"),
}


def requests_in(log: str) -> list[dict[str, Any]]:
    """The lines of the access log."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if line["event"] == "request"]


class TestAccessLog:
    """JSON when standard error is not a terminal."""

    def test_one_line_for_each_request(self, tmp_path: Path) -> None:
        """The line has the documented fields, and nothing else; health checks have none. It is written within
        a moment, not at the end."""
        with running_server(tmp_path) as server:
            server.post({"name": "Rex", "categoryId": 1})
            wait_for(lambda: len(requests_in(server.log)) == 1, "the line, while the server runs")
            server.request("GET", "/v1/pets", headers={"X-Request-Id": "mine-1"})
            server.request("GET", "/v1/pets/7")
            server.request("GET", "/v1/nothing")
            server.request("GET", "/v1/pets", key="wrong")
            server.request("GET", "/openapi.json", key="")
            server.request("GET", "/healthz")
            wait_for(lambda: len(requests_in(server.log)) == 6, "the lines")
            assert server.terminate() == 0
            lines = requests_in(server.log)
        assert [(line["operation"], line["status"]) for line in lines] == [
            ("createPet", 201),
            ("listPets", 200),
            ("getPet", 404),
            ("none", 404),
            ("listPets", 401),
            ("site", 200),
        ]
        assert [set(line) - FIELDS for line in lines] == [set()] * 4 + [{"cause"}, set()]
        assert all(set(line) >= FIELDS for line in lines)
        assert [(line["account"], line["key"]) for line in lines] == [(1, 1)] * 4 + [(None, None)] * 2
        assert lines[1]["request_id"] == "mine-1"
        assert len({line["request_id"] for line in lines}) == 6
        assert {line["address"] for line in lines} == {"127.0.0.1"}
        assert all(line["bytes"] > 0 for line in lines)
        assert all(0 < line["ms"] < 10_000 for line in lines)
        assert all(datetime.fromisoformat(line["time"]).tzinfo is not None for line in lines)

    def test_it_can_be_text(self, tmp_path: Path) -> None:
        """PETSTORE_LOG_FORMAT=text: for people. No priority: JOURNAL_STREAM is not standard error."""
        with running_server(tmp_path, log_format="text", variables={"JOURNAL_STREAM": "1:1"}) as server:
            server.request("GET", "/v1/pets", headers={"X-Request-Id": "mine-1"})
            assert server.terminate() == 0
            (line,) = [line for line in server.log.splitlines() if "mine-1" in line]
        assert re.fullmatch(
            r"\d\d:\d\d:\d\d\.\d{3} 200 GET /v1/pets  \d+\.\d{3} ms  2 bytes  address 127\.0\.0\.1"
            r"  account/key 1/1  request mine-1",
            line,
        )


def to_the_journal(path: Path) -> dict[str, Any]:
    """Start a server with standard error as systemd does: JOURNAL_STREAM names it."""
    path.touch()
    status = path.stat()
    stream = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
    return {"log": path, "variables": stream, "how": {"stdout": subprocess.DEVNULL}}


class TestEvents:
    """What the program tells about itself."""

    def test_every_line_of_a_whole_life_has_one_form(self, tmp_path: Path) -> None:
        """Parent and worker, from the first start to the stop: JSON, with the time to the microsecond, and
        the priority before it for the journal."""
        issue_key(tmp_path / "petstore.db")
        with running_server(tmp_path, log_level="debug", **to_the_journal(tmp_path / "stream")) as server:
            wait_for(lambda: '"ready"' in server.log, "the whole program")  # a worker answers before
            (first,) = server.workers()
            os.kill(first, signal.SIGKILL)
            wait_for(lambda: server.workers() not in ([], [first]), "the next worker")
            server.wait_until_ready()
            server.process.send_signal(signal.SIGHUP)
            wait_for(lambda: '"reloaded"' in server.log, "the one after it")
            assert server.terminate() == 0
            said = server.log.splitlines()
        lines = [json.loads(line[3:]) for line in said]
        for line, text in zip(lines, said, strict=True):
            assert list(line)[:3] == ["time", "level", "event"]
            assert text[:3] == {"debug": "<7>", "info": "<6>", "warning": "<4>"}[line["level"]]
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line["time"])
        events = [line["event"] for line in lines if line["event"] != "request"]
        assert [name for name in events if name != "drain"] == [
            "start",
            "ready",
            "worker ended",
            "reload",
            "reloaded",
            "stop",
            "stopped",
        ]
        started, ended = lines[0], next(line for line in lines if line["event"] == "worker ended")
        assert {started[name] for name in ("version", "database", "workers")} == {__version__, "sqlite", 1}
        assert started["address"] == server.base_url
        assert (ended["worker"], ended["pid"], ended["code"], ended["level"]) == (0, first, -9, "warning")

    def test_text_has_the_sentences_and_the_journal_priorities(self, tmp_path: Path) -> None:
        """PETSTORE_LOG_FORMAT=text: what happened, for people, and no key. PETSTORE_ACCESS_LOG=off: no
        request. JOURNAL_STREAM names standard error."""
        issue_key(tmp_path / "petstore.db")
        journal = to_the_journal(tmp_path / "stream")
        with running_server(tmp_path, log_format="text", access_log="off", **journal) as server:
            (first,) = server.workers()
            os.kill(first, signal.SIGKILL)
            wait_for(lambda: server.workers() not in ([], [first]), "the next worker")
            server.wait_until_ready()
            server.request("GET", "/v1/pets")
            assert server.terminate() == 0
        lines = server.log.splitlines()
        assert "/v1/pets" not in "".join(lines[1:])
        assert KEY_PATTERN.search(server.log) is None
        assert lines[0].startswith(f"<6>Pet Store Service at {server.base_url}/v1, documentation at ")
        assert "<4>Worker 0 ended with -9; starting another one." in lines
        assert lines[-1] == "<6>Stopped."
        assert all(re.match("<[46]>", line) for line in lines)


def misuse(server: Server, key: str) -> None:
    """Keys where they do not belong, and everywhere where something is written about a request."""
    plain = f"Authorization: Bearer {key}\r\n".encode()
    encoded = key.encode()
    for head in (
        b"GET /v1/pets?api_key=%s HTTP/1.1\r\nHost: a\r\n" % encoded,
        b"GET /v1/%s HTTP/1.1\r\nHost: a\r\n%s" % (encoded, plain),
        b"GET /v1/pets/%s HTTP/1.1\r\nHost: a\r\n%s" % (encoded, plain),
        b"GET /v1/pets HTTP/1.1\r\nHost: a\r\nCookie: key=%s\r\n" % encoded,
        b"GET /v1/pets HTTP/1.1\r\nHost: %s\r\n%s" % (encoded, plain),
        b"GET /v1/pets?limit=%s HTTP/1.1\r\nHost: a\r\n%s" % (encoded, plain),
        b"GET /v1/pets HTTP/1.1\r\nHost: a\r\n%s%s" % (plain, plain),
        b"GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Basic %s\r\n" % encoded,
        b"GET /v1/pets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %sx\r\n" % encoded,
        b"GET /v1/pets HTTP/1.1\r\nHost: a\r\nX-Request-Id: %s\r\n%s" % (encoded, plain),
        b"GET /v1/pets HTTP/1.1\r\nHost: a\r\nX-Request-Id: id=%s;\r\n%s" % (encoded, plain),
        b"BREW-%s /v1/pets HTTP/1.1\r\nHost: a\r\n%s" % (encoded.replace(b"_", b"-"), plain),
    ):
        assert encoded not in exchange(server.port, head + b"\r\n").body


def test_no_key_is_written_anywhere(tmp_path: Path) -> None:
    """A key is never in the log, the database, its WAL or its shared memory, neither while the server runs
    nor after it, whatever right and wrong requests were sent with the key."""
    key = issue_key(tmp_path / "petstore.db")
    secrets = [key.encode(), key.encode()[10:42], key.encode()[10:42].lower(), key.replace("_", "-").encode()]

    def leaks() -> list[str]:
        files = [file for file in tmp_path.iterdir() if file.is_file()]
        assert len(files) >= 3
        return [file.name for file in files if any(secret in file.read_bytes() for secret in secrets)]

    with running_server(tmp_path, log_level="debug", log_format="json") as server:
        server.key = key
        for _ in range(3):
            assert server.post({"name": "Rex", "categoryId": 1}).status == 201
            assert server.request("GET", "/v1/pets").status == 200
        misuse(server, key)
        wait_for(lambda: len(requests_in(server.log)) >= 18, "the lines")
        assert leaks() == []
        assert key.encode() not in server.request("GET", "/metrics").body
    assert leaks() == []
