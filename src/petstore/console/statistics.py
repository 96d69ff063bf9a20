"""Sums over the whole store for the overview, counted in the background while pages ask for them.

No page waits for a count. The pause after a count is twenty times its duration: whatever the size of the
store, counting takes at most 5 % of one core.
"""

from __future__ import annotations

import asyncio
from math import inf
from zoneinfo import ZoneInfo

import msgspec
import structlog

from petstore.core.clock import Clock
from petstore.core.durations import MINUTE_MS
from petstore.core.errors import StoreUnavailable
from petstore.core.totals import Totals, TotalsRepository

_PAUSE_MIN_SECONDS = 5.0
_PAUSE_RATIO = 20
# Enough to count a small store, so that its first page has all numbers.
_WAIT_SECONDS = 0.025

_log = structlog.get_logger("petstore.console")


class Counted(msgspec.Struct, frozen=True):
    """The totals of one count."""

    totals: Totals
    at_ms: int  # when the count began


class Statistics:
    """The latest count of a store, its weeks of `zone`. `failed`: the last attempt could not read it."""

    def __init__(self, totals: TotalsRepository, clock: Clock, zone: ZoneInfo) -> None:
        self._totals = totals
        self._clock = clock
        self._zone = zone
        self._counting: asyncio.Task[None] | None = None
        self._due_at = -inf
        self._latest: Counted | None = None
        self.failed = False

    async def latest(self) -> Counted | None:
        """The latest count, None before the first one. Begins the next one when it is due.

        Waits at most 25 ms, and only without a count of the last minute.
        """
        if self._counting is None and self._clock.monotonic() >= self._due_at:
            self._counting = asyncio.create_task(self._count())
        if self._counting is not None and not self._is_recent():
            await asyncio.wait([self._counting], timeout=_WAIT_SECONDS)
        return self._latest

    async def close(self) -> None:
        """Cancel a running count, and begin no other."""
        if self._counting is not None:
            self._counting.cancel()
            await asyncio.wait([self._counting])
        self._due_at = inf

    def _is_recent(self) -> bool:
        return self._latest is not None and self._clock.now_ms() - self._latest.at_ms < MINUTE_MS

    async def _count(self) -> None:
        began, now_ms = self._clock.monotonic(), self._clock.now_ms()
        try:
            self._latest = Counted(await self._totals.count(now_ms, self._zone), now_ms)
            self.failed = False
        except StoreUnavailable as error:
            self.failed = True
            _log.warning("store not counted", reason=str(error))
        except Exception as error:
            self.failed = True
            _log.error("store not counted", exc_info=error)
        finally:
            ended = self._clock.monotonic()
            self._due_at = ended + max(_PAUSE_MIN_SECONDS, _PAUSE_RATIO * (ended - began))
            self._counting = None
