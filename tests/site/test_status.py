"""The page of how well the service answers: what it says, and what it does not tell."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from petstore.core import packaged
from petstore.core.durations import HOUR_MS
from petstore.core.service import Latency, Period, ServiceStatus
from petstore.site.rendering import TemplateRenderer
from petstore.site.status import StatusPage
from tests.support.clock import ManualClock
from tests.support.service import Shop
from tests.support.waiting import PATIENCE_SECONDS

_HOUR = 1_795_381_200_000
_FIGURES = {"withoutFaultPercent", "p50Milliseconds", "p95Milliseconds"}


async def test_it_tells_how_requests_were_answered(shop: Shop) -> None:
    """Without a key, and nothing else: no counts, accounts, addresses, versions or reasons."""
    told: dict[str, Any] = {"last24Hours": {"withoutFaultPercent": None}}
    async with asyncio.timeout(PATIENCE_SECONDS):
        while told["last24Hours"]["withoutFaultPercent"] is None:
            assert (await shop.ask("GET", "/v1/pets")).status == 200
            shop.clock.advance(5)
            await asyncio.sleep(0)
            answer = await shop.call("GET", "/status")
            told = answer.json()
    assert answer.headers["content-type"] == "application/json"
    assert told.keys() == {"status", "since", "replicas", "last24Hours", "hours"}
    assert told["status"] == "well"
    assert told["last24Hours"].keys() == _FIGURES
    assert told["last24Hours"]["withoutFaultPercent"] == 100
    assert all(hour.keys() == {"from", *_FIGURES} for hour in told["hours"])


class _Report:
    """In the place of the history; counts how often it is read."""

    def __init__(self, state: str = "well", replicas: int = 1) -> None:
        self.reads = 0
        good = Period(_HOUR, 99.98, Latency(1.25, 4.0, 9.0))
        hours = [good, Period(_HOUR - HOUR_MS, None, None)]
        self._status = ServiceStatus(state, _HOUR - 1, replicas, good, hours)

    def read(self) -> ServiceStatus:
        self.reads += 1
        return self._status


class _Renderer:
    """The production templates' page of the status."""

    def __init__(self) -> None:
        folder = packaged.files("petstore.site")
        contract = {"info": {"version": "1.0.0"}}
        values = {"removal_date": "", "console": False, "is_staging": False}
        self._own = TemplateRenderer(folder, contract, lambda name: name, **values)

    async def __call__(self) -> TemplateRenderer:
        return self._own


async def _ask(page: StatusPage, accept: str) -> tuple[str, str]:
    """The media type and the text."""
    route = page.route()
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    headers = [(b"accept", accept.encode())]
    scope = {"type": "http", "method": "GET", "path": "/status", "headers": headers, "query_string": b""}
    await route.handle(scope, receive, send)
    return dict(sent[0]["headers"])[b"content-type"].decode(), sent[1]["body"].decode()


@pytest.mark.parametrize(
    ("state", "said"),
    [("well", "is well."), ("failing", "some requests of the last minute failed"), ("down", "errors#503")],
)
async def test_the_page_says_it_in_words(state: str, said: str) -> None:
    """And the figures; an hour without requests says so; of several replicas it is one."""
    for replicas in (1, 3):
        media_type, text = await _ask(
            StatusPage(_Report(state, replicas).read, _Renderer(), {}, ManualClock()), "text/html"
        )
        assert media_type == "text/html; charset=utf-8"
        assert said in text
        assert text.count("99.98 %</td><td>1.2 ms</td><td>4.0 ms") == 2
        assert text.count("no requests") == 1
        assert ("the one of 3 replicas" in text) == (replicas == 3)


async def test_many_readers_cost_one_look_in_five_seconds() -> None:
    """Whatever they read."""
    report, clock = _Report(), ManualClock()
    page = StatusPage(report.read, _Renderer(), {}, clock)
    for accept in 50 * ("text/html", "application/json"):
        await _ask(page, accept)
    assert report.reads == 1
    clock.advance(5)
    assert '"p50Milliseconds":1.2' in (await _ask(page, "*/*"))[1]
    assert report.reads == 2
