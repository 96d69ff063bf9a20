"""Watches what holds events back: a transaction, of any program in the database server, that does not end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
import structlog

from petstore.core.events import Held
from petstore.ops.counts import Counts, Gauges

# Storing a list may take this long.
_LOGGED_AFTER_SECONDS = 5.0

_log = structlog.get_logger("petstore.events")


class HeldEvents(msgspec.Struct):
    """`ask` returns what is held back at this moment; None where nothing is. Raises StoreUnavailable."""

    ask: Callable[[], Awaitable[Held | None]]
    _seconds: float = 0.0
    _is_logged: bool = False

    async def refresh(self) -> None:
        """Call it every few seconds. Logs the beginning and the end of a long hold."""
        held = await self.ask()
        self._seconds = 0.0 if held is None else held.seconds
        if held is not None and held.seconds >= _LOGGED_AFTER_SECONDS and not self._is_logged:
            self._is_logged = True
            _log.warning("events are held back", seconds=round(held.seconds, 1), by=held.by)
        elif held is None and self._is_logged:
            self._is_logged = False
            _log.info("events go on")

    def set_gauges(self, _: Counts, gauges: Gauges) -> None:
        """Set the gauge, by the last refresh."""
        gauges.events_held_seconds = self._seconds
