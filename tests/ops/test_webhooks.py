"""Metrics of webhooks and mail: of the store by each refresh, and of the tries of the background process."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from petstore.core.notifications import GATHERED_MS
from petstore.ops import health, webhooks
from petstore.ops.counts import Counts, Gauges
from petstore.ops.metrics import Metrics
from petstore.ops.webhooks import DeliveryCounts, MailWatch, WebhookWatch
from petstore.ops.worker_metrics import WorkerMetricsDirectory
from tests.support.journal import ACTOR
from tests.support.service import open_shop, settle

COUNTED = 'petstore_webhook_deliveries_total{{outcome="{}"}}'


def samples(metrics: Metrics) -> dict[str, float]:
    lines = (line for line in metrics.scrape().render().decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def tried(metrics: Metrics) -> tuple[float, float]:
    """Tries that delivered, and that failed."""
    shown = samples(metrics)
    return shown[COUNTED.format("delivered")], shown[COUNTED.format("failed")]


async def test_the_state_of_the_store_is_that_of_the_last_refresh() -> None:
    """Each state is there from the start, at 0."""
    watch = WebhookWatch(ask)
    metrics = Metrics()
    metrics.add_collector(watch.collect)
    states = [f'petstore_webhooks{{state="{state}"}}' for state in ("healthy", "failing", "disabled")]
    names = [*states, "petstore_webhook_oldest_undelivered_seconds"]
    assert [samples(metrics)[name] for name in names] == [0, 0, 0, 0]
    await watch.refresh()
    assert [samples(metrics)[name] for name in names] == [5, 2, 1, 7.5]


async def ask() -> tuple[dict[str, int], float]:
    return {"healthy": 5, "failing": 2, "disabled": 1}, 7.5


async def test_mail_of_the_store_is_that_of_the_last_refresh() -> None:
    """Both gauges are there from the start, at 0, and after the last mail again."""
    answers = iter([(3, 61.5), (0, 0.0)])

    async def ask() -> tuple[int, float]:
        return next(answers)

    watch, metrics, shown = MailWatch(ask), Metrics(), []
    metrics.add_collector(watch.collect)
    for refresh in (None, watch.refresh, watch.refresh):
        if refresh is not None:
            await refresh()
        there = samples(metrics)
        shown.append((there["petstore_mails_waiting"], there["petstore_mail_oldest_seconds"]))
    assert shown == [(0, 0), (3, 61.5), (0, 0)]


async def test_a_service_that_has_a_mail_server_shows_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The metric comes from the store, which the service's health looks at."""
    monkeypatch.setattr(health, "INTERVAL_SECONDS", 0)
    async with open_shop(tmp_path, smtp_url="smtp://127.0.0.1:1", mail_from="petstore@example.com") as shop:
        await shop.store.contacts.add("account", "tests", "ops@shop.example", ACTOR)
        await shop.store.notifications.gather()
        await shop.store.accounts.suspend("tests", ACTOR)
        await shop.store.notifications.gather()
        shop.clock.ms += GATHERED_MS
        text = ""
        async with asyncio.timeout(30):
            while "petstore_mails_waiting 1.0" not in text:
                await settle()
                text = (await shop.call("GET", "/metrics")).body.decode()
        assert "petstore_mail_oldest_seconds 60.0" in text


async def test_mails_are_counted_by_what_came_of_them(tmp_path: Path) -> None:
    """Mails are counted by outcome in the same file as attempts to deliver; each outcome begins at 0."""
    scraped, counts = Metrics(WorkerMetricsDirectory(tmp_path, os.getpid())), DeliveryCounts(tmp_path)
    names = [f'petstore_mails_total{{outcome="{each}"}}' for each in ("sent", "failed", "given_up")]
    assert [samples(scraped)[name] for name in names] == [0, 0, 0]
    for outcome in ("failed", "sent", "failed", "given_up", "failed"):
        counts.mailed(outcome)
    counts.share()
    assert [samples(scraped)[name] for name in names] == [1, 3, 1]


async def test_workers_show_what_the_background_process_has_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Soon after a try, whichever worker is scraped; it writes nothing while there are none, and its own
    memory and descriptors are not a worker's."""
    monkeypatch.setattr(webhooks, "_SHARED_AFTER_SECONDS", 0)
    scraped, counts = Metrics(WorkerMetricsDirectory(tmp_path, os.getpid())), DeliveryCounts(tmp_path)
    scraped.add_source(has_descriptors)
    counts.share()
    assert written(tmp_path) == []
    for is_success in (True, False, True):
        counts.tried(is_success)
    assert tried(scraped) == (0, 0)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert tried(scraped) == (2, 1)
    counts.tried(True)
    counts.share()  # as at the end
    assert (tried(scraped), samples(scraped)["process_max_fds"]) == ((3, 1), 9)


def written(directory: Path) -> list[Path]:
    return list(directory.iterdir())


def has_descriptors(_: Counts, gauges: Gauges) -> None:
    gauges.max_descriptors = 9


async def test_counts_that_can_not_be_written_stop_no_delivery(tmp_path: Path) -> None:
    """A line in the log; without a directory there is nothing to write."""
    with capture_logs() as lines:
        for directory in (tmp_path / "absent", None):
            counts = DeliveryCounts(directory)
            counts.tried(True)
            counts.share()
    assert [line["event"] for line in lines] == ["counts not shared with the other workers"]
