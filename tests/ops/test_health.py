"""The gauges petstore_ready, petstore_store_up and petstore_limiter_up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from petstore import config
from petstore.core.clock import SystemClock
from petstore.core.errors import StoreUnavailable
from petstore.ops import health
from petstore.ops.counts import Counts, Gauges
from petstore.ops.health import Health
from petstore.storage.sqlite.store import SqliteStore
from petstore.wiring.application import Application
from tests.support.cases import every_case
from tests.support.service import call
from tests.support.waiting import until


class Parts:
    """The parts of a service that Health asks."""

    def __init__(self) -> None:
        self.answers = True
        self.hangs = self.in_outage = False
        self.trouble: str | None = None

    async def probe(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        if not self.answers:
            raise StoreUnavailable("It is gone.")

    async def check_limiter(self) -> None:
        """Valkey is watched by the limiter itself."""

    def health(self, refreshes: Sequence[Callable[[], Awaitable[None]]] = (), **options: Any) -> Health:
        return Health(
            probe=self.probe,
            check_limiter=self.check_limiter,
            refreshes=refreshes,
            trouble=lambda: self.trouble,
            in_outage=lambda: self.in_outage,
            **options,
        )

    async def gauges(self, limiter_outage: str | None = None) -> tuple[int, int, int]:
        """Ready, store up, limiter up."""
        watched = self.health(limiter_outage=limiter_outage)
        await watched.check_store()
        gauges = Gauges()
        watched.set_gauges(Counts(), gauges)
        return gauges.ready, gauges.store_up, gauges.limiter_up


async def test_what_each_fault_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store away, hanging, without room; Valkey away, with a share or with 503."""
    parts = Parts()
    assert await parts.gauges() == (1, 1, 1)
    parts.trouble = "not for 10 s"
    assert await parts.gauges() == (0, 1, 1)
    parts.trouble, parts.in_outage = None, True
    assert await parts.gauges("share") == (1, 1, 0)
    assert await parts.gauges("refuse") == (0, 1, 0)
    parts.in_outage, parts.answers = False, False
    assert await parts.gauges() == (0, 0, 1)
    parts.hangs = True
    monkeypatch.setattr(health, "_TIMEOUT_SECONDS", 0)
    assert await parts.gauges() == (0, 0, 1)


@every_case(
    ("runs", "shown"),
    [(None, None), (True, "ok"), (False, "its process does not run: jobs wait")],
)
async def test_requests_are_served_without_the_background_process(
    runs: bool | None, shown: str | None
) -> None:
    """Operators see it at /readyz; the service stays ready."""
    watched = Parts().health(background=lambda: runs)
    assert watched.checks().get("background") == shown
    assert watched.is_ready


async def test_a_probe_that_fails_is_no_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store fails after it was asked, or somebody has locked a table: the others are looked at."""
    seen = 0

    async def fail() -> None:
        raise StoreUnavailable("It took too long.")

    async def count() -> None:
        nonlocal seen
        seen += 1

    monkeypatch.setattr(health, "INTERVAL_SECONDS", 0)
    watched = Parts().health([fail, count])
    with capture_logs() as lines:
        running = asyncio.create_task(watched.run())
        await until(lambda: seen > 1)
        running.cancel()
        await asyncio.wait([running])
    assert lines == []


async def test_an_idle_service_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks /readyz: the gauges fall with the store and rise with it."""
    probes, answers = 0, True

    async def probe(_: SqliteStore) -> None:
        nonlocal probes
        probes += 1
        if not answers:
            raise StoreUnavailable("It is gone.")

    monkeypatch.setattr(SqliteStore, "probe", probe)
    monkeypatch.setattr(health, "INTERVAL_SECONDS", 0)
    application = Application(
        config.load({"PETSTORE_DATABASE_URL": f"sqlite:///{tmp_path}/p.db"}), SystemClock()
    )
    await application.start()
    try:
        for answers in (True, False, True):
            seen = probes
            await until(lambda seen=seen: probes > seen + 1)  # type: ignore[misc]
            shown = (await call(application, "GET", "/metrics", [("host", "127.0.0.1")])).body.decode()
            for gauge in ("ready", "store_up"):
                assert f"petstore_{gauge} {float(answers)}\n" in shown
            assert "petstore_limiter_up 1.0\n" in shown
    finally:
        await application.stop()
