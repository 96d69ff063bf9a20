"""What an account is shown, what the operator is shown, and what is billed agree, to the request."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from petstore import config
from petstore.core.billing import sum_up
from petstore.core.durations import DAY_MS
from petstore.core.limits.plans import Plan
from petstore.core.moments import iso_day
from petstore.limiter.valkey import client
from petstore.ops import flusher
from petstore.wiring.application import Application
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import fresh_database
from tests.support.service import Shop
from tests.support.valkey import PATIENT, SteeredTime, emptied_url, steered_scripts
from tests.support.windows import limits_of

TARGETS = ("/v1/pets", "/v1/pets/1", "/v1/usage", "/v1/nowhere")


class House:
    """Replicas of one service by one clock, and what their clients were answered on each day."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.shops: list[Shop] = []
        self.time: SteeredTime | None = None
        self.requests: Counter[int] = Counter()
        self.refused: Counter[int] = Counter()
        self.deprecated: Counter[int] = Counter()

    @property
    def store(self) -> Any:
        return self.shops[0].store

    @property
    def today(self) -> int:
        return self.clock.now_ms() // DAY_MS

    def move(self, seconds: float) -> None:
        self.clock.advance(seconds)
        if self.time is not None:
            self.time.send()

    async def ask(self, shop: Shop, target: str, key: str) -> Any:
        answer = await shop.ask("GET", target, key=key)
        counted = self.refused if answer.status == 429 else self.requests
        counted[self.today] += 1
        self.deprecated[self.today] += target == "/v1/pets/1"
        return answer

    async def saved(self) -> None:
        for shop in self.shops:
            await shop.application.service.flusher.save()


@pytest.fixture(params=["sqlite", "two replicas"])
async def house(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[House]:
    # The test alone saves: beside the flusher's own round a save would count twice.
    monkeypatch.setattr(flusher, "INTERVAL_SECONDS", 3_600)
    opened = House(clock)
    environment = {"PETSTORE_ACCESS_LOG": "off", "PETSTORE_DATABASE_URL": f"sqlite:///{tmp_path}/petstore.db"}
    async with AsyncExitStack() as stack:
        if request.param != "sqlite":
            url = emptied_url()
            opened.time = SteeredTime(url, clock)
            opened.time.send()
            scripts, open_client = steered_scripts(), client.open_client
            monkeypatch.setattr(
                client, "open_client", lambda url, _, watch: open_client(url, PATIENT, watch, scripts)
            )
            environment |= {
                "PETSTORE_DATABASE_URL": stack.enter_context(fresh_database(migrated=True)),
                "PETSTORE_VALKEY_URL": url,
                "PETSTORE_REPLICAS": "2",
                "PETSTORE_DATABASE_POOL": "2",
            }
        for _ in range(1 if request.param == "sqlite" else 2):
            application = Application(config.load(environment), clock)
            await application.start()
            stack.push_async_callback(application.stop)
            opened.shops.append(Shop(application, clock, tmp_path))
        yield opened


async def test_the_sums_agree(house: House) -> None:
    """Over midnights and changes of plan: clients' answers, GET /usage, the report and the bill."""
    chance = random.Random(7)
    key, _ = await house.shops[0].open_account("shop", "enterprise", 20, 30)
    first = house.today
    limits = {}
    for _ in range(5):
        for _ in range(chance.randrange(1, 4)):
            plan = Plan("enterprise", limits_of(chance.randrange(5, 25), chance.randrange(20, 50)))
            await house.store.accounts.set_plan("shop", plan, ACTOR)
            limits[house.today] = plan.limits
            for _ in range(chance.randrange(20)):
                await house.ask(chance.choice(house.shops), chance.choice(TARGETS), key)
            house.move(61)
        await house.saved()
        house.move(86_400 - house.clock.now_ms() % DAY_MS / 1_000 - 30)  # half a minute before midnight
        for _ in range(3):
            await house.ask(chance.choice(house.shops), "/v1/pets", key)
        house.move(60)
    shown = [(await house.ask(shop, "/v1/usage", key)).json() for shop in house.shops]
    assert [usage["day"]["used"] for usage in shown] == [
        house.requests[house.today] - len(shown) + number for number in range(1, len(shown) + 1)
    ]
    await house.saved()
    last = (await house.ask(house.shops[0], "/v1/usage", key)).json()
    await house.saved()
    expected = [
        (iso_day(day), house.requests[day], house.refused[day], house.deprecated[day])
        for day in range(house.today, first - 1, -1)
    ]
    assert sum(house.refused.values()) > 10
    members = ("date", "requests", "refused", "deprecated")
    assert [tuple(day[member] for member in members) for day in last["days"] if day["requests"]] == expected
    report = await house.store.usage.report(house.clock.now_ms(), 1)
    assert [(iso_day(day.day), day.requests, day.refused, day.deprecated) for day in report.days] == expected
    assert report.windows.used[-1] == last["day"]["used"] == house.requests[house.today]
    [account] = await house.store.billing.accounts(first, house.today, 0, 9)
    days = list(account.bill(first, house.today))
    assert [(day.date, day.requests, day.refused, day.deprecated) for day in reversed(days)] == expected
    assert sum(row.requests for row in sum_up(days)) == sum(house.requests.values())
    billed = {day: row.plan.limits for day, row in enumerate(days, start=first)}
    assert billed | limits == billed
