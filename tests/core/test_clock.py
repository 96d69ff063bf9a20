"""The clocks of the machine, and the one that tests steer."""

from __future__ import annotations

from datetime import UTC, datetime

from petstore.core.clock import SystemClock
from tests.support.clock import ManualClock


def test_the_system_clock_tells_milliseconds_since_the_epoch() -> None:
    """Within a minute of what the standard library says."""
    now_ms = SystemClock().now_ms()
    assert isinstance(now_ms, int)
    assert abs(now_ms / 1_000 - datetime.now(UTC).timestamp()) < 60


def test_the_monotonic_clock_never_steps_back() -> None:
    """Only differences mean something, in seconds."""
    clock = SystemClock()
    moments = [clock.monotonic() for _ in range(1_000)]
    assert moments == sorted(moments)
    assert moments[-1] - moments[0] < 60


def test_the_steered_clock_stands_until_it_is_moved() -> None:
    """Forward and back."""
    clock = ManualClock()
    start = clock.now_ms()
    assert clock.now_ms() == start
    clock.advance(1.5)
    clock.advance(-0.5)
    assert clock.now_ms() == start + 1_000
    clock.set_seconds(7)
    assert (clock.now_ms(), clock.monotonic()) == (7_000, 7.0)
