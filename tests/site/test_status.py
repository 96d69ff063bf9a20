"""The page of how well the service answers: what it says, and what it does not tell."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest

from petstore.core.durations import HOUR_MS
from petstore.core.service import Latency, Period, ServiceStatus
from tests.support.service import Shop
from tests.support.waiting import PATIENCE_SECONDS

_HOUR = 1_795_381_200_000
_FIGURES = {"withoutFaultPercent", "p50Milliseconds", "p95Milliseconds"}


async def test_it_tells_how_requests_were_answered(shop: Shop) -> None:
    """It needs no key, and tells nothing else: no counts, accounts, addresses, versions or reasons."""
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


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """It stands for what the history tells."""
    told = Mock(return_value=status())
    monkeypatch.setattr("petstore.ops.status.ServiceStatus", told)
    return told


def status(state: str = "well", replicas: int = 1) -> ServiceStatus:
    good = Period(_HOUR, 99.98, Latency(1.25, 4.0, 9.0))
    return ServiceStatus(state, _HOUR - 1, replicas, good, [good, Period(_HOUR - HOUR_MS, None, None)])


@pytest.mark.parametrize(
    ("state", "said"),
    [("well", "is well."), ("failing", "some requests of the last minute failed"), ("down", "errors#503")],
)
async def test_the_page_says_the_state_in_words_and_figures(
    shop: Shop, read: Mock, state: str, said: str
) -> None:
    """An hour without requests says so; of several replicas it is one."""
    for replicas in (1, 3):
        read.return_value = status(state, replicas)
        shop.clock.advance(5)
        page = await shop.call("GET", "/status", [("accept", "text/html")])
        text = page.body.decode()
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert said in text
        assert text.count("99.98 %</td><td>1.2 ms</td><td>4.0 ms") == 2
        assert text.count("no requests") == 1
        assert ("the one of 3 replicas" in text) == (replicas == 3)


async def test_many_readers_of_any_form_cost_one_look_in_five_seconds(shop: Shop, read: Mock) -> None:
    """Any number of readers of any form cost one look in 5 s: in trouble everybody opens this page."""
    for accept in 50 * ("text/html", "application/json"):
        await shop.call("GET", "/status", [("accept", accept)])
    read.assert_called_once()
    shop.clock.advance(5)
    assert (await shop.call("GET", "/status")).json()["last24Hours"]["p50Milliseconds"] == 1.2
    assert read.call_count == 2
