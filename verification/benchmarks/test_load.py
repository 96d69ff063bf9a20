"""What the generator sends and reads, and what it measures of a server that stands still."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import closing

import pytest

from verification.benchmarks.load.bursts import REQUESTS, Bursts
from verification.benchmarks.load.client import request_bytes, whole_answers
from verification.benchmarks.load.closed import Load
from verification.benchmarks.load.heartbeat import Beats
from verification.benchmarks.load.open_loop import Interval, open_loop
from verification.benchmarks.rows.latency import cause_of

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
_STALL: Interval = (10.0, 10.1)


def test_a_line_may_have_a_body_of_its_own() -> None:
    """A line has a body of its own, with its spaces, or else that of the load."""
    assert request_bytes('/v1/pets key {"name": "Max"}', "PATCH", "{}").endswith(b'\r\n\r\n{"name": "Max"}')
    assert request_bytes("/v1/pets key", "POST", "{}").endswith(b"\r\n\r\n{}")
    assert b"Content-" not in request_bytes("/v1/pets key", "GET", "")


def test_answers_are_read_wherever_they_are_cut() -> None:
    """A piece of an answer waits for the rest."""
    for received in range(2 * len(_ANSWER)):
        whole, rest = divmod(received, len(_ANSWER))
        assert whole_answers((_ANSWER * 2)[:received]) == ([200] * whole, _ANSWER[:rest])


def _serve(listener: socket.socket, stand_still_after: int, seconds: float) -> None:
    connection, _ = listener.accept()
    answered = 0
    with connection:
        while received := connection.recv(65_536):
            requests = received.count(b"\r\n\r\n")
            if answered < stand_still_after <= answered + requests:
                time.sleep(seconds)
            answered += requests
            connection.sendall(_ANSWER * requests)


def test_a_stall_counts_for_every_request_that_was_due() -> None:
    """A stall counts for every request that was due in that time, not only for the one that had left."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=_serve, args=(listener, 50, 0.2))
        serving.start()
        taken = open_loop(listener.getsockname()[1], 1.0, 500.0, Load(("/",), connections=1))
        serving.join()
    assert taken.answers == 500
    assert taken.percentiles["p99"] > 150  # a fifth of all were due in that time
    assert max(ended - began for began, ended in taken.stalls) > 0.15


def _end_third(listener: socket.socket) -> None:
    """Each connection has one request; every third one gets no answer."""
    for number in range(REQUESTS * 3 // 2):
        connection, _ = listener.accept()
        with connection:
            if connection.recv(65_536) and number % 3:
                connection.sendall(_ANSWER)


def test_a_request_without_an_answer_is_none_of_those_expected() -> None:
    """It is asked again, and counts: a server that drops requests is not compared with one that does not."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=_end_third, args=(listener,), daemon=True)
        serving.start()
        with closing(Bursts(Load(("/",), connections=1), listener.getsockname()[1])) as bursts:
            assert bursts.one() >= REQUESTS // 3


@pytest.mark.parametrize(
    ("late", "beats", "cause"),
    [
        ([], Beats(), "waited"),
        ([], Beats(working=[(9.9, 10.04), (10.06, 10.2)]), "worked"),
        ([], Beats(working=[(10.0, 10.04)]), "waited"),
        ([], Beats(without_core=[_STALL], working=[_STALL]), "without a core"),
        ([], Beats(late=[_STALL]), "without a core"),
        ([], Beats(late=[(10.0, 10.03)], without_core=[(10.02, 10.05)]), "without a core"),
        ([], Beats(late=[(10.0, 10.03)], without_core=[(10.01, 10.04)]), "waited"),
        ([_STALL], Beats(without_core=[_STALL]), "of the generator"),
        ([_STALL], Beats(late=[_STALL]), "of the machine"),
    ],
)
def test_the_cause_of_a_stall_is_what_was_so_for_most_of_it(
    late: list[Interval], beats: Beats, cause: str
) -> None:
    """The generator and the heartbeat see a machine that stands still."""
    assert cause_of(_STALL, late, beats) == cause
