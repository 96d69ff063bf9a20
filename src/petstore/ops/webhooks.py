"""What operators see of webhooks and mails: how they do, and the outcomes of attempts to send."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

import msgspec
import structlog
from prometheus_client.core import GaugeMetricFamily, Metric

from petstore.ops.counts import Counts, Gauges
from petstore.ops.worker_metrics import ProcessMetrics, WorkerMetricsDirectory

_SHARED_AFTER_SECONDS = 1.0

_log = structlog.get_logger("petstore.metrics")


class WebhookWatch:
    """`ask` returns how many webhooks are healthy, failing and disabled, and for how many seconds the oldest
    event has waited for a healthy one. Raises StoreUnavailable."""

    def __init__(self, ask: Callable[[], Awaitable[tuple[dict[str, int], float]]]) -> None:
        self._ask = ask
        self._states = {"healthy": 0, "failing": 0, "disabled": 0}
        self._seconds = 0.0

    async def refresh(self) -> None:
        """Call it every few seconds."""
        self._states, self._seconds = await self._ask()

    def collect(self) -> Iterable[Metric]:
        """The gauges, by the last refresh."""
        family = GaugeMetricFamily("petstore_webhooks", "Webhooks by how they do.", labels=["state"])
        for state, count in self._states.items():
            family.add_metric([state], count)
        yield family
        text = "How long the oldest event has waited for a healthy webhook."
        yield GaugeMetricFamily("petstore_webhook_oldest_undelivered_seconds", text, value=self._seconds)


class MailWatch(msgspec.Struct):
    """`ask` returns how many mails are due, and the age, in seconds, of the oldest that the server has not
    refused. Raises StoreUnavailable."""

    ask: Callable[[], Awaitable[tuple[int, float]]]
    _count: int = 0
    _seconds: float = 0.0

    async def refresh(self) -> None:
        """Call it every few seconds."""
        self._count, self._seconds = await self.ask()

    def collect(self) -> Iterable[Metric]:
        """The gauges, by the last refresh."""
        yield GaugeMetricFamily("petstore_mails_waiting", "Mails that are due.", value=self._count)
        text = "Age of the oldest mail that is due and was not refused."
        yield GaugeMetricFamily("petstore_mail_oldest_seconds", text, value=self._seconds)


class DeliveryCounts:
    """Counts the attempts of the background process for the workers that are scraped: it writes them a second
    after one, and nothing while there are none."""

    def __init__(self, directory: Path | None) -> None:
        """`directory`: where workers exchange their metrics; without one nothing is shown."""
        self._shared = WorkerMetricsDirectory(directory, os.getpid()) if directory else None
        self._counts = Counts()
        self._timer: asyncio.TimerHandle | None = None

    def tried(self, is_success: bool) -> None:
        """One attempt has ended."""
        self._count(self._counts.deliveries, "delivered" if is_success else "failed")

    def mailed(self, outcome: str) -> None:
        """A mail was `sent`, has `failed`, or was `given_up`."""
        self._count(self._counts.mails, outcome)

    def _count(self, counts: dict[str, int], outcome: str) -> None:
        counts[outcome] += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SHARED_AFTER_SECONDS, self.share)

    def share(self) -> None:
        """Write what was counted since; call it at the end."""
        if self._timer is None or self._shared is None:
            return
        self._timer.cancel()
        self._timer = None
        try:
            self._shared.write(ProcessMetrics(self._counts, Gauges(), serves=False))
        except OSError as error:
            _log.warning("counts not shared with the other workers", reason=str(error))
