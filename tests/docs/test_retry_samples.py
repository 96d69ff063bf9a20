"""The guide's retries against a server that drops and refuses: they wait, and add an animal once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.docs.documents import text_of
from tests.docs.samples import GUIDE, Sample, play, samples

pytestmark = pytest.mark.e2e

RETRY_AFTER = 1
DROPPED = 0


class Moody(ThreadingHTTPServer):
    """Answers each method as `script` says, then well. `seen`: each request's moment and Idempotency-Key."""

    def __init__(self, script: dict[str, list[int]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.seen: dict[str, list[tuple[float, str]]] = {"GET": [], "POST": []}

    def pause_before_the_last(self, method: str) -> float:
        (before, _), (last, _) = self.seen[method][-2:]
        return last - before


class _Handler(BaseHTTPRequestHandler):
    server: Moody

    def do_GET(self) -> None:
        self._answer(200)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(201)

    def _answer(self, well: int) -> None:
        self.server.seen[self.command].append((time.monotonic(), self.headers.get("Idempotency-Key", "")))
        planned = self.server.script.get(self.command, [])
        status = planned.pop(0) if planned else well
        if status == DROPPED:
            return
        self.send_response(status)
        if status != well:
            self.send_header("Retry-After", str(RETRY_AFTER))
        self.end_headers()
        self.wfile.write(json.dumps({"name": "Mia"}).encode())

    def log_message(self, *_arguments: object) -> None:
        """Nothing."""


@contextmanager
def moody(**script: list[int]) -> Iterator[Moody]:
    with Moody(script) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def chosen(language: str, *parts: str) -> list[Sample]:
    """The guide's samples of a language that have one of the parts."""
    return [
        sample
        for sample in samples(text_of(GUIDE))
        if sample.language == language and any(part in sample.code for part in parts)
    ]


def surroundings(server: Moody) -> dict[str, str]:
    return {"BASE": f"http://127.0.0.1:{server.server_port}/v1", "KEY": "pets_live_any"}


@pytest.mark.parametrize(
    ("language", "opening", "retry"),
    [("python", "requests.Session()", "def send("), ("js", "process.env.KEY", "async function send(")],
)
def test_a_retry_waits_and_keeps_its_key(language: str, opening: str, retry: str, tmp_path: Path) -> None:
    """After a lost answer and a 503 with Retry-After: one Idempotency-Key in all tries, and the pause."""
    with moody(POST=[DROPPED, 503]) as server:
        *_, printed = play(chosen(language, opening, retry), tmp_path, surroundings(server))
    assert printed == ["201 Mia"]
    assert len({key for _, key in server.seen["POST"]}) == 1
    assert len(server.seen["POST"]) == 3
    assert server.pause_before_the_last("POST") >= RETRY_AFTER


def test_the_gate_closes_after_a_429(tmp_path: Path) -> None:
    """Until Retry-After no process asks: here the one that was refused."""
    parts = ("requests.Session()", "def send(", "def send_through_gate(")
    with moody(GET=[200, 429]) as server:
        *_, printed = play(chosen("python", *parts), tmp_path, surroundings(server))
    assert printed == ["200"]
    assert server.pause_before_the_last("GET") >= RETRY_AFTER
