"""Saves counters, usage and refused requests about once a second, and at a clean stop.

A kill loses at most about one second of counts. The same loop drives the store's purge, the metrics of
workers and the ends of incidents.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

import structlog

from petstore.core.clock import Clock
from petstore.core.errors import OperatorError, StoreUnavailable
from petstore.core.limits.counters import Limiter, LimiterState
from petstore.core.limits.usage import UsageChanges, UsageMeter

INTERVAL_SECONDS = 1.0
_PURGE_EVERY_SECONDS = 60
_SAVE_OVERDUE_SECONDS = 10

_log = structlog.get_logger("petstore.flusher")


class CounterFlusher:
    """Collects changes and saves them; keeps them for the next round when that fails.

    `saved_ms`: all counts before this time are saved.
    """

    def __init__(
        self,
        *,
        limiter: Limiter,
        meter: UsageMeter,
        save: Callable[[LimiterState, UsageChanges], Awaitable[None]],
        purge: Callable[[int], Awaitable[None]],
        try_write: Callable[[], Awaitable[None]],
        each_round: Collection[Callable[[], object]],
        clock: Clock,
    ) -> None:
        self._limiter = limiter
        self._meter = meter
        self._save = save
        self._further: list[Callable[[], Awaitable[None]]] = []
        self._purge = purge
        self._try_write = try_write
        self._each_round = each_round
        self._clock = clock
        self._state = LimiterState()
        self._usage = UsageChanges()
        self._purged_at = clock.monotonic()
        self._began_at: float | None = None
        self._saved_at: float | None = None
        self._reason = ""
        self._stopping = asyncio.Event()
        self._saving = asyncio.Lock()  # what is saved twice at once is counted twice
        self.saved_ms = clock.now_ms()

    @property
    def trouble(self) -> str | None:
        """Why nothing was saved for 10 s, or since the start; None otherwise."""
        if self._reason and self._saved_at is None:
            return f"not since the start: {self._reason}"
        since = self._saved_at if self._reason else self._began_at
        seconds = 0.0 if since is None else self._clock.monotonic() - since
        if seconds < _SAVE_OVERDUE_SECONDS:
            return None
        return f"not for {seconds:.0f} s: {self._reason or 'the disk or the server does not answer.'}"

    def also_save(self, step: Callable[[], Awaitable[None]]) -> None:
        """Await `step` after the counters are saved, each time. It may raise StoreUnavailable."""
        self._further.append(step)

    async def save(self) -> None:
        """Write all pending changes. Raises StoreUnavailable and ConfigurationError, and keeps them."""
        async with self._saving:
            self._state.update(self._limiter.drain())
            self._usage.add(self._meter.drain())
            state, usage = self._state, self._usage
            now_ms = self._clock.now_ms()
            if state.windows or state.bans or usage.daily:
                await self._save(state, usage)
                self._state, self._usage = LimiterState(), UsageChanges()
                self._limiter.saved()
            elif self._saved_at is None or self._reason:  # an idle service does not write
                await self._try_write()
            for step in self._further:
                await step()
            self.saved_ms = now_ms

    async def run(self) -> None:
        """Run until `stop`. Do not cancel it: changes being saved would be counted twice."""
        while await self._pause():
            self._begin_round()
            self._began_at = self._clock.monotonic()
            try:
                await self.save()
                # The stopwatch says when: a time of day that is wrong for a moment seldom removes too much.
                if self._clock.monotonic() - self._purged_at >= _PURGE_EVERY_SECONDS:
                    self._purged_at = self._clock.monotonic()
                    await self._purge(self._clock.now_ms())
                if self._reason:
                    _log.info("counters saved again")
                self._saved_at, self._reason = self._clock.monotonic(), ""
            except (StoreUnavailable, OperatorError) as error:
                if self._is_new(str(error)):
                    _log.warning("counters not saved yet", reason=self._reason)
            except Exception as error:
                # Saving must go on as long as the service does.
                if self._is_new(f"an unexpected {type(error).__name__}, which is in the log"):
                    _log.error("counters not saved yet", exc_info=error)
            self._began_at = None
        self._begin_round()

    def _is_new(self, reason: str) -> bool:
        """Keep why nothing was saved: an outage logs it once, not in each round."""
        before, self._reason = self._reason, reason
        return reason != before

    def stop(self) -> None:
        """End `run` after the current round."""
        self._stopping.set()

    def _begin_round(self) -> None:
        for step in self._each_round:
            try:
                step()
            except Exception as error:  # as for the saving
                _log.error("a step of the round failed", exc_info=error)

    async def _pause(self) -> bool:
        """Wait for the next round; False when there is none."""
        try:
            await asyncio.wait_for(self._stopping.wait(), INTERVAL_SECONDS)
        except TimeoutError:
            return True
        return False
