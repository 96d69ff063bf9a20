"""The clock of the machine."""

from __future__ import annotations

from datetime import UTC, datetime

from petstore.core.clock import AwakeClock, SystemClock


def test_the_system_clock_tells_milliseconds_since_the_epoch() -> None:
    """Within a minute of what the standard library says."""
    now_ms = SystemClock().now_ms()
    assert isinstance(now_ms, int)
    assert abs(now_ms / 1_000 - datetime.now(UTC).timestamp()) < 60


def test_a_pause_of_the_machine_is_no_time() -> None:
    """A turn of work and wait that ends more than a second after its timeout met a pause, wherever: the
    excess is left out."""
    now = 100.0
    awake = AwakeClock(lambda: now)
    began = awake()
    turns = ((0.0, 5.0, 5.0), (0.5, 5.0, 3.0), (0.0, 5.0, 6.0), (0.0, 5.0, 65.0), (0.0, 1.0, 31.0))
    for worked, timeout, waited in (*turns, (30.0, 0.0, 0.0)):
        now += worked + waited
        awake.wait_ended(timeout)
    assert awake() - began == 5.0 + 3.5 + 6.0 + 5.0 + 1.0
