"""What holds events back is shown and logged, once for each hold."""

from __future__ import annotations

from structlog.testing import capture_logs

from petstore.core.events import Held
from petstore.ops.counts import Counts, Gauges
from petstore.ops.held_events import HeldEvents


async def test_a_long_hold_is_logged_at_its_beginning_and_its_end() -> None:
    """The gauge follows each refresh; what lasts less than five seconds is not logged."""
    current: Held | None = None

    async def ask() -> Held | None:
        return current

    watch, gauges = HeldEvents(ask), Gauges()
    shown: list[float] = []
    with capture_logs() as lines:
        for seconds in (None, 4.9, None, 5.0, 60.0, None, None, 7.0):
            current = None if seconds is None else Held(seconds, "session 7 of anna")
            await watch.refresh()
            watch.set_gauges(Counts(), gauges)
            shown.append(gauges.events_held_seconds)
    assert shown == [0, 4.9, 0, 5.0, 60.0, 0, 0, 7.0]
    assert [(line["event"], line.get("by"), line.get("seconds")) for line in lines] == [
        ("events are held back", "session 7 of anna", 5.0),
        ("events go on", None, None),
        ("events are held back", "session 7 of anna", 7.0),
    ]
