"""The clock of the machine."""

from __future__ import annotations

from datetime import UTC, datetime

from petstore.core.clock import SystemClock


def test_the_system_clock_tells_milliseconds_since_the_epoch() -> None:
    """Within a minute of what the standard library says."""
    now_ms = SystemClock().now_ms()
    assert isinstance(now_ms, int)
    assert abs(now_ms / 1_000 - datetime.now(UTC).timestamp()) < 60
