"""Answers that drip, or never end, from a server that speaks in bytes: a call has an end, and a bound."""

from __future__ import annotations

import socket
import threading
import tracemalloc
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from petstore_client import NoAnswer, Unavailable, UnexpectedAnswer
from petstore_client.connection import ANSWER_MAX_BYTES, Silence, watch

from tests.client.kit import KEY, Pace, Scripted, answer, client_of
from tests.support.clock import ManualClock

HEAD = b"HTTP/1.1 200 OK\r\n"
SIZED = HEAD + b"Content-Length: 9999\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"
EMPTY = HEAD + b"Content-Length: 2\r\n\r\n[]"
DRIPS = {
    "body": (SIZED + b"\r\n", b" "),
    "head": (HEAD + b"X-Slow: ", b"a"),
    "head after head": (
        HEAD.replace(b"200 OK", b"100 Continue") + b"\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
    ),
    "size of a chunk": (CHUNKED + b"\r\n1; ", b"a"),
    "compressed": (SIZED + b"Content-Encoding: gzip\r\n\r\n" + b"\x1f\x8b\x08\x08" + bytes(6), b"a"),
}


class Bytes:
    """A server. Each connection gets the next of these series of bytes; an empty piece awaits a request."""

    def __init__(self, *series: Iterable[bytes]) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.cut = 0  # connections that the client closed before they were done
        self._thread = threading.Thread(target=self._serve, args=(series,), daemon=True)
        self._thread.start()

    def _serve(self, series: Iterable[Iterable[bytes]]) -> None:
        for pieces in series:
            with suppress(OSError), self._listening.accept()[0] as connection:
                try:
                    for piece in chain([b""], pieces):
                        if piece:
                            connection.sendall(piece)
                        else:
                            connection.recv(65_536)
                except OSError:
                    self.cut += 1
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65_536):  # closing on unread bytes would take back what was sent
                    pass

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(10)


@contextmanager
def served(kind: str, clock: ManualClock, *series: Iterable[bytes], **options: Any) -> Iterator[Any]:
    """A client of this kind, on a server of these bytes."""
    server = Bytes(*series)
    options["runtime"] = Pace(clock).runtime()
    address = f"http://127.0.0.1:{server.port}"
    try:
        with client_of(kind, address, KEY, **options) as petstore:
            yield petstore, server
    finally:
        server.close()


def dripping(clock: ManualClock, head: bytes, piece: bytes) -> Iterator[bytes]:
    """The piece once a second, fifty times."""
    yield head
    for _ in range(50):
        clock.advance(1)
        yield piece


@pytest.mark.parametrize("options", [{"seconds": 9}, {"seconds": 0, "timeout": 9}])
@pytest.mark.parametrize("drip", DRIPS)
def test_a_dripping_answer_ends_with_the_seconds_of_the_call(
    kind: str, drip: str, options: dict[str, float]
) -> None:
    """Wherever it drips: no read is silent for long. Without seconds the one try has its timeout."""
    clock = ManualClock()
    with (
        served(kind, clock, dripping(clock, *DRIPS[drip]), **options) as (petstore, _),
        pytest.raises(NoAnswer, match="seconds of the call are over") as caught,
    ):
        petstore.pets.create(name="Rex", category_id=1)
    assert caught.value.outcome_unknown
    assert caught.value.idempotency_key


def test_a_kept_connection_has_the_deadline_of_the_call_that_reads(kind: str) -> None:
    """A kept connection has the deadline of the call that reads, not of the one that opened it."""
    clock = ManualClock()

    def twice() -> Iterator[bytes]:
        yield EMPTY
        yield b""
        yield from dripping(clock, SIZED + b"\r\n", b" ")

    with served(kind, clock, twice(), seconds=0) as (petstore, _):
        assert petstore.categories.list() == []
        clock.advance(100)
        with pytest.raises(NoAnswer, match="seconds of the call are over"):
            petstore.with_options(seconds=9).categories.list()


@pytest.mark.parametrize("opened", ["connect_tcp", "start_tls"])
def test_each_step_is_watched_with_tls_and_without(opened: str) -> None:
    """Each takes what the steps before it left. TLS has a stream of its own on that of the connection."""
    clock = ManualClock()

    def echo(argument: object, timeout: float) -> tuple[object, float]:
        return argument, timeout

    silence = Silence(30.0, clock.monotonic() + 9, clock.monotonic)
    clock.advance(4)
    begun: dict[str, Any] = {"timeout": silence}
    watch(f"connection.{opened}.started", begun)
    assert begun == {"timeout": 5}
    stream = SimpleNamespace(read=echo, write=echo)
    watch(f"connection.{opened}.complete", {"return_value": stream})
    assert stream.write(b"a", timeout=silence) == (b"a", 5)
    assert stream.read(2, timeout=silence) == (2, 5)
    clock.advance(5)
    for step in (stream.read, stream.write):
        with pytest.raises(httpx2.ReadTimeout, match="seconds of the call are over"):
            step(2, timeout=silence)
    with pytest.raises(httpx2.ConnectTimeout, match="seconds of the call are over"):
        watch(f"connection.{opened}.started", begun)


@pytest.mark.parametrize(
    ("call", "more"),
    [
        (lambda petstore: petstore.categories.list(), 0),
        (lambda petstore: petstore.events.list(wait=100), 100),
        (lambda petstore: petstore.webhooks.test(3), 20),
    ],
    ids=["usual", "events", "test"],
)
def test_every_step_of_a_request_has_its_time(scripted: Scripted, call: Any, more: int) -> None:
    """The client's time limits; an answer also as long as the service may hold it back."""
    next_page = {"Link": '</v1/events?after=b-1>; rel="next"'}
    petstore, script = scripted(answer(202 if more == 20 else 200, [], next_page), timeout=7, seconds=9)
    call(petstore)
    limits = script.requests[0].extensions["timeout"]
    assert limits == {"pool": 7, "connect": 7, "write": 7, "read": 7 + more}


def test_seconds_are_a_deadline_too(scripted: Scripted) -> None:
    """They are one where they are less than the timeout."""
    petstore, script = scripted(answer(200, []), seconds=7)
    petstore.categories.list()
    assert set(script.requests[0].extensions["timeout"].values()) == {7}


def test_no_call_begins_its_try_in_its_last_second(scripted: Scripted) -> None:
    """The answer of a change would come too late, and its outcome be unknown. Or in its last tenth."""
    for seconds, waits in [(61, 60), (60.5, 0), (1e9, 60)]:
        petstore, script = scripted(answer(200, [], left=0), answer(200, []), seconds=seconds)
        petstore.categories.list()
        with suppress(Exception):
            petstore.categories.list()
        assert script.clock.monotonic() - script.times[0] == waits
    petstore, _ = scripted(answer(200, []), seconds=0.001)
    assert petstore.categories.list() == []


def blocks(head: bytes, block: bytes) -> Iterator[bytes]:
    """A body of 64 MiB, or what the client takes of it."""
    yield head + b"\r\n"
    for _ in range(64 * 2**20 // len(block)):
        yield block


@pytest.mark.parametrize(("status", "error"), [(b"200 OK", UnexpectedAnswer), (b"503 No", Unavailable)])
def test_an_endless_answer_is_cut(kind: str, status: bytes, error: type[Exception]) -> None:
    """The connection of an endless answer is closed after 16 MiB, and the next call has another one."""
    endless = blocks(b"HTTP/1.1 " + status + b"\r\n", b" " * 65_536)
    with served(kind, ManualClock(), endless, [EMPTY], tries=1) as (petstore, server):
        with pytest.raises(error, match="16 MiB" if status == b"200 OK" else "http_503") as caught:
            petstore.pets.update(7, name="Rex")
        assert caught.value.outcome_unknown  # type: ignore[attr-defined]
        assert petstore.categories.list() == []
    assert server.cut == 1


@pytest.mark.parametrize("kind", ["async"])
def test_a_small_answer_does_not_fill_the_memory(kind: str) -> None:
    """The bound of an answer holds after decompression, piece by piece: 64 KB stand for 64 MiB."""
    packing = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packing.compress(bytes(2**20)) for _ in range(64)) + packing.flush()
    head = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    with served(kind, ManualClock(), [head + bomb]) as (petstore, _):
        tracemalloc.start()
        try:
            with pytest.raises(UnexpectedAnswer, match="16 MiB"):
                petstore.categories.list()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 3 * ANSWER_MAX_BYTES
