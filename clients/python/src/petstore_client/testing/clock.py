"""The fake's clock, and clients whose waits move it on instead of sleeping."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime

from petstore_client.runtime import Runtime

_LOOKS_EVERY_SECONDS = 0.001
START = datetime(2027, 1, 15, 8, 0, 30, tzinfo=UTC)


class Clock:
    """Stands until a test moves it."""

    def __init__(self, now: datetime) -> None:
        """`now` has a time zone."""
        self._ms = round(now.timestamp() * 1_000)
        self._runs_since: float | None = None

    def now(self) -> datetime:
        """The time in UTC."""
        return datetime.fromtimestamp(self.ms / 1_000, UTC)

    @property
    def ms(self) -> int:
        """Unix time in milliseconds."""
        running = 0.0 if self._runs_since is None else time.monotonic() - self._runs_since
        return self._ms + int(running * 1_000)

    def seconds(self) -> float:
        """Unix time."""
        return self.ms / 1_000

    def advance(self, seconds: float) -> None:
        """Move on; raises ValueError for a negative number."""
        if seconds < 0:
            raise ValueError("The clock does not go back.")
        self._ms += round(seconds * 1_000)

    def run(self) -> None:
        """Go on by itself, as other programs expect."""
        self._ms, self._runs_since = self.ms, time.monotonic()

    def stop(self) -> None:
        """Stand again."""
        self._ms, self._runs_since = self.ms, None


class SteeredRuntime(Runtime):
    """The surroundings of a fake's own clients: no wait sleeps.

    When all calls under way wait, the clock jumps to the next moment that one waits for.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock.seconds, clock.seconds, lambda: 0.5, self._wait, self._wait_async)
        self._clock = clock
        self._waits: dict[threading.Event | asyncio.Event, float] = {}
        self._turn = threading.Lock()

    def _wait(self, event: threading.Event, seconds: float) -> None:
        until = self._begin(event, seconds)
        try:
            while not event.is_set() and not self._has_come(until):
                event.wait(_LOOKS_EVERY_SECONDS)
        finally:
            self._end(event)

    async def _wait_async(self, event: asyncio.Event, seconds: float) -> None:
        until = self._begin(event, seconds)
        try:
            await asyncio.sleep(0)  # tasks that are ready come first
            while not event.is_set() and not self._has_come(until):  # noqa: ASYNC110  (its clock is steered)
                await asyncio.sleep(0)
        finally:
            self._end(event)

    def _begin(self, event: threading.Event | asyncio.Event, seconds: float) -> float:
        with self._turn:
            self._waits[event] = self._clock.seconds() + seconds
            return self._waits[event]

    def _end(self, event: threading.Event | asyncio.Event) -> None:
        with self._turn:
            del self._waits[event]

    def _has_come(self, until: float) -> bool:
        with self._turn:
            is_woken = any(event.is_set() for event in self._waits)
            if not is_woken and len(self._waits) == len(self.calls) and until == min(self._waits.values()):
                self._clock.advance(max(until - self._clock.seconds(), _LOOKS_EVERY_SECONDS))
            return self._clock.seconds() >= until
