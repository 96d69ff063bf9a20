"""What /metrics tells of the service and its process, read through the application."""

from __future__ import annotations

import asyncio
import threading

import pytest

from petstore.core.errors import StoreUnavailable
from petstore.ops.counts import CAUSES, COUNT_SPECS, GAUGE_SPECS, STATUSES, WINDOWS, Counts, Gauges
from petstore.ops.metrics import Scrape
from tests.support.contract import document
from tests.support.service import Shop
from tests.support.waiting import PATIENCE_SECONDS, until
from tools.exchanges import arriving


async def scrape(shop: Shop) -> dict[str, float]:
    """Every sample by its name and labels."""
    text = (await shop.call("GET", "/metrics")).body.decode()
    samples = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in samples}


async def test_the_event_loop_is_free_while_the_text_is_made(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread makes it, which takes 20 ms; what is counted meanwhile is not in it."""
    making, may_go_on = asyncio.Event(), threading.Event()
    loop, render = asyncio.get_running_loop(), Scrape.render

    def wait_and_render(scrape: Scrape) -> bytes:
        loop.call_soon_threadsafe(making.set)
        assert may_go_on.wait(PATIENCE_SECONDS)
        return render(scrape)

    monkeypatch.setattr(Scrape, "render", wait_and_render)
    scraping = asyncio.create_task(scrape(shop))
    await making.wait()
    await shop.ask("GET", "/v1/pets")
    may_go_on.set()
    name = 'petstore_requests_total{operation="listPets",status="200"}'
    assert ((await scraping)[name], (await scrape(shop))[name]) == (0, 1)


class TestFromTheStart:
    """An alert on an increase sees the first event only where the series was there before, at 0."""

    def test_statuses_are_those_of_the_contract(self) -> None:
        """Each operation with each status that the document gives it."""
        operations = [
            operation
            for path in document()["paths"].values()
            for operation in path.values()
            if isinstance(operation, dict) and "operationId" in operation
        ]
        documented = {each["operationId"]: sorted(map(int, each["responses"])) for each in operations}
        assert {name: sorted(STATUSES[name]) for name in documented} == documented

    async def test_every_series_is_there(self, shop: Shop) -> None:
        """Operations with their statuses and classes, windows, causes; nothing has happened yet."""
        shown = await scrape(shop)
        wanted = [
            f'petstore_requests_total{{operation="{operation}",status="{status}"}}'
            for operation, statuses in STATUSES.items()
            for status in statuses
        ]
        wanted += [
            f'petstore_request_seconds_count{{class="{kind}xx",operation="{operation}"}}'
            for operation in STATUSES
            for kind in (2, 4, 5)
        ]
        wanted += [f'petstore_refusals_total{{window="{window}"}}' for window in WINDOWS]
        wanted += [f'petstore_unauthorized_total{{cause="{cause}"}}' for cause in CAUSES]
        assert [shown.get(name) for name in wanted] == [0.0] * len(wanted)

    async def test_nothing_else_appears(self, shop: Shop) -> None:
        """Requests of every kind leave as many series as there were."""
        before = (await scrape(shop)).keys()
        await shop.post({"name": "Rex", "categoryId": 1})
        for target in ("/v1/pets", "/v1/pets/1", "/v1/pets/2", "/v1/x", "/v1/pets?limit=0", "/docs", "/x"):
            await shop.ask("GET", target)
            await shop.ask("OPTIONS", target)
            await shop.ask("PUT", target)
            await shop.ask("GET", target, key="wrong")
        assert (await scrape(shop)).keys() == before


class TestGauges:
    """How the service stands."""

    async def test_what_is_kept_and_what_was_read(self, shop: Shop) -> None:
        """Pages and keys in memory, and how often one had to be read: the same page twice is read once."""
        for target in ("/v1/pets", "/v1/pets", "/v1/pets?limit=1", "/v1/pets"):
            await shop.ask("GET", target)
        shown = await scrape(shop)
        assert (shown["petstore_kept_pages"], shown["petstore_page_reads_total"]) == (2, 2)
        assert (shown["petstore_kept_keys"], shown["petstore_key_reads_total"]) == (1, 1)

    async def test_requests_and_writes_under_way(self, shop: Shop) -> None:
        """Requests whose answer is not complete, and writes that wait; none once they are."""
        held = threading.Event()
        writer = shop.store.writer
        holding = asyncio.create_task(writer.submit(lambda _: held.wait(10)))
        requests = [asyncio.create_task(shop.post({"name": "Rex", "categoryId": 1})) for _ in range(3)]
        await until(lambda: writer.waiting == 4)
        shown = await scrape(shop)
        held.set()
        await asyncio.gather(holding, *requests)
        assert (shown["petstore_requests_in_flight"], shown["petstore_store_writes_waiting"]) == (3, 4)
        shown = await scrape(shop)
        assert (shown["petstore_requests_in_flight"], shown["petstore_store_writes_waiting"]) == (0, 0)

    async def test_a_request_whose_client_leaves_is_not_in_flight(self, shop: Shop) -> None:
        """The body never comes; the request is over for the metrics, too."""
        await shop.call(
            "POST", "/v1/pets", [("authorization", f"Bearer {shop.key}")], arriving([], leaves=True)
        )
        assert (await scrape(shop))["petstore_requests_in_flight"] == 0

    async def test_when_counters_were_saved(self, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
        """The time goes on with each save, and stands while saving fails."""
        flusher, name = shop.application.service.flusher, "petstore_counters_saved_timestamp_seconds"
        await shop.ask("GET", "/v1/pets")
        shop.clock.advance(100)
        await flusher.save()
        saved = (await scrape(shop))[name]
        assert saved == shop.clock.now_ms() / 1_000

        async def fail(*_: object) -> None:
            raise StoreUnavailable("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(flusher, "_save", fail)
            await shop.ask("GET", "/v1/pets")
            shop.clock.advance(100)
            with pytest.raises(StoreUnavailable, match="full"):
                await flusher.save()
        assert (await scrape(shop))[name] == saved

    async def test_the_database_on_the_disk(self, shop: Shop) -> None:
        """The size of the file and of its log, and the room that is left."""
        await shop.post({"name": "Rex", "categoryId": 1})
        shown = await scrape(shop)
        assert shown["petstore_database_bytes"] == shop.path.stat().st_size
        assert (
            shown["petstore_database_log_bytes"] == shop.path.with_name("petstore.db-wal").stat().st_size > 0
        )
        assert shown["petstore_disk_free_bytes"] > 0
        assert shown["petstore_backup_timestamp_seconds"] == 0

    async def test_the_metrics_of_the_process_are_plausible(self, shop: Shop) -> None:
        """Processor time that grows, memory, descriptors within their bound, a start in the past."""
        shown = await scrape(shop)
        sum(range(1_000_000))
        later = await scrape(shop)
        assert 0 < shown["process_cpu_seconds_total"] < later["process_cpu_seconds_total"]
        assert 0 < shown["process_resident_memory_bytes"] < shown["process_virtual_memory_bytes"]
        assert 0 < shown["process_open_fds"] < shown["process_max_fds"]
        assert shown["process_start_time_seconds"] == shop.clock.now_ms() / 1_000


def test_each_number_is_shown() -> None:
    """The answers have families of their own; each other field has its row."""
    assert {"answers", *COUNT_SPECS} == set(Counts.__struct_fields__)
    assert list(GAUGE_SPECS) == list(Gauges.__struct_fields__)
