"""The log's thread: nothing waits for standard error, and what standard error takes is all there."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest
import structlog

from petstore import config
from petstore.core.errors import StoreUnavailable
from petstore.ops import log_writers, logs
from petstore.ops.access_log import AccessEntry, AccessFormat
from petstore.ops.log_writers import LogWriter
from petstore.storage.sqlite.backend import SqliteBackend
from petstore.wiring.application import Application
from tests.support.clock import ManualClock
from tests.support.service import open_shop
from tests.support.waiting import wait_for

ENTRY = AccessEntry(
    0, 0.0005, "GET", "/v1/pets", "listPets", 200, 2, ("127.0.0.1", 1), b"", None, None, b"mine-1"
)
FORM = AccessFormat()
CLOSED_SECONDS = 5.0  # one for the log's thread, and four for a busy machine


class Pipe:
    """Standard error as a service manager gives it: somebody reads at the other end, or nobody does."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def fill(self) -> None:
        """Write until not a byte more goes in; the next write waits."""
        os.set_blocking(self.writer, False)
        try:
            while True:
                os.write(self.writer, b"x" * 4_096)
        except BlockingIOError:
            os.set_blocking(self.writer, True)

    def content(self) -> bytes:
        """What came through, once nobody writes any more."""
        os.close(self.writer)
        self.writer = -1
        with os.fdopen(os.dup(self.reader), "rb") as file:
            return file.read()

    def close(self) -> None:
        """The reader first: it lets a thread go that waits for it. A thread that still had lines would write
        them to whatever has the writer's number next, such as the pipe of the next test."""
        os.close(self.reader)
        for thread in threading.enumerate():
            if thread.name == "petstore-log":
                thread.join(30)
        if self.writer >= 0:
            os.close(self.writer)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A pipe in the place of standard error; structlog is as before afterwards."""
    made = Pipe()
    yield made
    made.close()
    structlog.reset_defaults()


def events(content: bytes) -> list[str]:
    """The events in a log of JSON lines."""
    return [json.loads(line)["event"] for line in content.splitlines()]


class TestNobodyReads:
    """Standard error is a pipe that is full."""

    def test_no_line_waits_and_neither_does_the_end(
        self, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both kinds of lines are taken at once, and the end comes within about a second."""
        pipe.fill()
        writer = logs.start("info", "json", pipe.writer)
        began = monotonic()
        for _ in range(100):
            writer.record(ENTRY)
            structlog.get_logger("tests").error("something")
        assert monotonic() - began < CLOSED_SECONDS
        writer.close()
        assert monotonic() - began < 2 * CLOSED_SECONDS
        monkeypatch.setattr(log_writers, "_CLOSE_SECONDS", 30.0)
        began = monotonic()
        structlog.get_logger("tests").error("too late")
        assert monotonic() - began < CLOSED_SECONDS

    @pytest.mark.parametrize("access_log", ["on", "off"])
    async def test_the_service_goes_on_and_stops(
        self, tmp_path: Path, pipe: Pipe, monkeypatch: pytest.MonkeyPatch, access_log: str
    ) -> None:
        """Answers come, also those that are told in the log, and so does the stop."""
        pipe.fill()
        monkeypatch.setattr(logs, "_standard_error", lambda: pipe.writer)
        monkeypatch.setattr(log_writers, "_CLOSE_SECONDS", 0.01)
        async with open_shop(tmp_path, access_log=access_log) as shop:

            async def fail(*_: object) -> None:
                raise StoreUnavailable("The disk is gone.")

            monkeypatch.setattr(shop.store.pets, "add", fail)
            for _ in range(50):
                assert (await shop.ask("GET", "/v1/pets")).status == 200
            assert (await shop.post({"name": "Rex", "categoryId": 1})).status >= 500
            began = monotonic()
        assert monotonic() - began < CLOSED_SECONDS

    def test_what_is_too_much_is_counted(self, pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
        """Past the bound lines are dropped, and the number is known."""
        monkeypatch.setattr(log_writers, "_WAITING_MAX", 10)
        monkeypatch.setattr(log_writers, "_CLOSE_SECONDS", 0.01)
        pipe.fill()
        writer = LogWriter(FORM.json_line, pipe.writer)
        for _ in range(100):
            writer.record(ENTRY)
        assert 79 <= writer.dropped <= 90  # ten wait, and eleven may be with the thread
        writer.close()

    def test_a_reader_that_is_gone(self, pipe: Pipe) -> None:
        """What can't be written is counted, and breaks nothing."""
        os.close(pipe.reader)
        writer = LogWriter(FORM.json_line, pipe.writer)
        writer.record(ENTRY)
        writer.write("a line")
        writer.close()
        assert writer.dropped == 2
        pipe.reader = os.open(os.devnull, os.O_RDONLY)

    async def test_the_number_is_a_metric(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """petstore_log_lines_dropped_total; here there is no standard error at all."""
        monkeypatch.setattr(sys, "stderr", None)
        async with open_shop(tmp_path, access_log="on") as shop:
            writer = shop.application.service.log_writer
            for _ in range(3):
                await shop.ask("GET", "/v1/pets")
            wait_for(lambda: writer.dropped == 3, "the lines")
            shown = (await shop.call("GET", "/metrics")).body.decode()
        assert "petstore_log_lines_dropped_total 3.0\n" in shown


class TestSomebodyReads:
    """The usual case."""

    @pytest.mark.parametrize("blocking", [True, False])
    def test_every_line_is_there_in_order(self, pipe: Pipe, blocking: bool) -> None:
        """Both kinds through one queue, whether or not somebody made the pipe non-blocking."""
        os.set_blocking(pipe.writer, blocking)
        writer = logs.start("info", "json", pipe.writer)
        for number in range(3):
            structlog.get_logger("tests").warning(f"event {number}")
            writer.record(ENTRY)
            writer.record(ENTRY)
        structlog.get_logger("tests").debug("not at this level")
        writer.close()
        expected = [f"event {number}" for number in range(3)]
        assert events(pipe.content()) == [name for one in expected for name in (one, "request", "request")]
        assert writer.dropped == 0

    def test_a_non_blocking_pipe_that_was_full(self, pipe: Pipe) -> None:
        """The rest is written once there is room."""
        pipe.fill()
        os.set_blocking(pipe.writer, False)
        writer = LogWriter(FORM.json_line, pipe.writer)
        writer.record(ENTRY)
        os.set_blocking(pipe.reader, False)
        received = b""
        while b"mine-1" not in received:
            try:
                received += os.read(pipe.reader, 65_536)
            except BlockingIOError:
                continue
        writer.close()
        assert writer.dropped == 0

    async def test_a_start_that_fails_is_told(
        self, tmp_path: Path, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What was logged before the failure, and the failure itself, are written before the process ends."""

        def fail(*_: object) -> None:
            structlog.get_logger("tests").warning("on the way")
            raise StoreUnavailable("The disk is gone.")

        monkeypatch.setattr(logs, "_standard_error", lambda: pipe.writer)
        monkeypatch.setattr(SqliteBackend, "open", fail)
        settings = config.load({"PETSTORE_DATABASE_URL": f"sqlite:///{tmp_path}/petstore.db"})
        assert not await Application(settings, ManualClock()).try_to_start()
        assert events(pipe.content()) == ["on the way", "start failed"]


class TestDirectly:
    """The parent of the workers, which has no thread for it."""

    def test_a_line_is_there_when_the_call_returns(self, pipe: Pipe) -> None:
        """One that is longer than a pipe takes at once is whole, too, when somebody reads."""
        logs.start_directly("info", "json", pipe.writer)
        structlog.get_logger("tests").warning("x" * 20_000)
        structlog.get_logger("tests").debug("not at this level")
        assert events(pipe.content()) == ["x" * 20_000]

    def test_nobody_is_waited_for(self, pipe: Pipe) -> None:
        """A reader that has stopped reading costs the line, and a tenth of a second."""
        pipe.fill()
        logs.start_directly("info", "json", pipe.writer)
        began = monotonic()
        structlog.get_logger("tests").warning("lost")
        assert monotonic() - began < CLOSED_SECONDS

    def test_a_reader_that_is_gone_breaks_nothing(self, pipe: Pipe) -> None:
        """The service outlives a pipe of its log that nobody reads any more."""
        os.close(pipe.reader)
        logs.start_directly("info", "json", pipe.writer)
        structlog.get_logger("tests").warning("lost")
        pipe.reader = os.open(os.devnull, os.O_RDONLY)


def test_the_time_has_six_decimals_on_a_full_second_too(pipe: Pipe) -> None:
    """A reader with a fixed layout finds every field where it was."""
    writer = logs.start("info", "json", pipe.writer)
    writer.record(ENTRY)
    writer.close()
    assert json.loads(pipe.content())["time"] == "1970-01-01T00:00:00.000000Z"
