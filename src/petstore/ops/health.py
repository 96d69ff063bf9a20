"""Whether this process can serve: what /readyz answers and the gauges show.

Store and shared counters are probed every five seconds, so the gauges are right without requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec
import structlog

from petstore.core.errors import StoreUnavailable
from petstore.ops.counts import Counts, Gauges

INTERVAL_SECONDS = 5.0
_TIMEOUT_SECONDS = 5.0
_OK = "ok"

_log = structlog.get_logger("petstore.health")


class Health(msgspec.Struct, kw_only=True):
    """`probe` raises StoreUnavailable; `check_limiter` lets an outage begin that no request has met.

    `refreshes` ask the store, while it answers, for what else is shown. `trouble` says why counters have not
    been saved for 10 s, if so. `limiter_outage`: PETSTORE_LIMITER_OUTAGE; None without Valkey. `background`:
    whether jobs are carried out, where that is known; requests are served without.
    """

    probe: Callable[[], Awaitable[None]]
    check_limiter: Callable[[], Awaitable[None]]
    refreshes: Sequence[Callable[[], Awaitable[None]]]
    trouble: Callable[[], str | None]
    in_outage: Callable[[], bool]
    limiter_outage: str | None = None
    background: Callable[[], bool | None] = lambda: None
    _store: str = _OK

    async def check_store(self) -> None:
        """Ask the store, for five seconds at most."""
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                await self.probe()
        except StoreUnavailable as error:
            self._store = error.message
        except TimeoutError:
            self._store = f"it did not answer within {_TIMEOUT_SECONDS:g} s"
        else:
            self._store = _OK

    @property
    def is_ready(self) -> bool:
        """Whether requests can be served, by the last check; a draining process still serves."""
        refuses = self.limiter_outage == "refuse" and self.in_outage()
        return self._store == _OK and self.trouble() is None and not refuses

    def checks(self) -> dict[str, str]:
        """What /readyz shows to operators."""
        checks = {"store": self._store, "saving": self.trouble() or _OK}
        if (background := self.background()) is not None:
            checks["background"] = _OK if background else "its process does not run: jobs wait"
        if self.limiter_outage is not None:
            checks["counters"] = _OK
            if self.in_outage():
                refuses = self.limiter_outage == "refuse"
                effect = "requests are refused" if refuses else "a local share is granted"
                checks["counters"] = f"out of reach, {effect}"
        return checks

    def set_gauges(self, _: Counts, gauges: Gauges) -> None:
        """Set the gauges, by the last check."""
        gauges.ready = int(self.is_ready)
        gauges.store_up = int(self._store == _OK)
        gauges.limiter_up = int(not self.in_outage())

    async def run(self) -> None:
        """Check every five seconds, until cancelled."""
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            try:
                await self.check_store()
                await self.check_limiter()
                for refresh in self.refreshes if self._store == _OK else ():
                    with suppress(StoreUnavailable):  # it failed since, or a table is locked
                        await refresh()
            except Exception as error:
                _log.error("a step of the round failed", exc_info=error)
