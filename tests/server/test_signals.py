"""Signals as the parent takes them: none is lost, whatever surrounds it."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator

import pytest

from petstore.server.signals import TAKEN, SignalPipe


@pytest.fixture
def _blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, TAKEN)
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def send(*numbers: signal.Signals) -> None:
    for number in numbers:
        os.kill(os.getpid(), number)


def test_a_storm_hides_no_other_signal() -> None:
    """More than the pipe holds: the end of a worker and the order to stop are told all the same."""
    signals = SignalPipe()
    try:
        send(*[signal.SIGHUP] * 5_000, signal.SIGCHLD, signal.SIGTERM)
        signals.wait([], 10)
        assert set(signals.take()) == {signal.SIGHUP, signal.SIGCHLD, signal.SIGTERM}
        send(signal.SIGHUP)
        signals.wait([], 10)
        assert signals.take() == bytes([signal.SIGHUP])
        assert signals.take() == b""
    finally:
        signals.close()


@pytest.mark.usefixtures("_blocked")
def test_signals_that_were_blocked_before_the_start() -> None:
    """A program that blocks signals hands that on to what it starts, which would never end."""
    signals = SignalPipe()
    try:
        send(signal.SIGTERM)
        signals.wait([], 0)
        assert signals.take() == bytes([signal.SIGTERM])
    finally:
        signals.close()


def test_waiting_needs_no_descriptor() -> None:
    """The parent goes on where none is left, in this process or on the machine."""
    signals = SignalPipe()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (signals.fileno(), before[1]))
    try:
        send(signal.SIGTERM)
        signals.wait([], 10)
        assert signals.take() == bytes([signal.SIGTERM])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        signals.close()
