"""What is counted for reports: requests, refusals and calls of the deprecated operation, and the last use."""

from __future__ import annotations

from typing import Any

from petstore.core.durations import DAY_MS
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE, Plan
from petstore.core.limits.usage import DailyUsage, UsageChanges, UsageReport
from petstore.core.moments import iso_day
from tests.support.journal import ACTOR
from tests.support.service import Shop
from tests.support.windows import limits_of


async def days(shop: Shop, account_id: int) -> list[DailyUsage]:
    """The report of an account, after everything counted was written."""
    await shop.application.service.flusher.save()
    report: UsageReport = await shop.store.usage.report(shop.clock.now_ms(), account_id)
    return report.days


class TestUsage:
    """Counts by account and UTC day."""

    async def test_what_is_counted(self, shop: Shop) -> None:
        """Admitted requests whatever their status, 429 as refused, 401 and OPTIONS not at all; each call with
        a key of the deprecated operation, HEAD, 410 and 429 included, and no other method on its path. A day
        ends with its last millisecond."""
        key, _ = await shop.open_account("a", "enterprise", 4, 9)
        for method, target in (
            ("GET", "/v1/pets/1"),
            ("HEAD", "/v1/pets/abc"),
            ("DELETE", "/v1/pets/1"),
            ("GET", "/v1/pets?id=1"),
            ("GET", "/v1/pets/1"),
        ):
            await shop.ask(method, target, key=key)
        await shop.call("GET", "/v1/pets/1")
        await shop.ask("OPTIONS", "/v1/pets", key=key)
        today = shop.clock.now_ms() // DAY_MS
        assert await days(shop, 2) == [DailyUsage(today, requests=4, refused=1, deprecated=3)]
        assert await days(shop, 1) == []
        midnight_ms = 1_922_659_200_000
        for shop.clock.ms in (midnight_ms - 1, midnight_ms):
            await shop.ask("GET", "/v1/pets/1", key=key)
        assert [(day.day, day.requests, day.deprecated) for day in await days(shop, 2)] == [
            (midnight_ms // DAY_MS, 1, 1), (midnight_ms // DAY_MS - 1, 1, 1),
        ]  # fmt: skip

    async def test_nothing_is_lost_by_a_clean_stop(self, shop: Shop) -> None:
        """What was counted before and after a restart adds up."""
        key, _ = await shop.open_account("a", "pro")
        for _ in range(3):
            await shop.ask("GET", "/v1/pets/1", key=key)
            await shop.restart()
        assert [(day.requests, day.deprecated) for day in await days(shop, 2)] == [(3, 3)]

    async def test_the_last_use_is_that_of_the_key_that_was_used(self, shop: Shop) -> None:
        """It is the time of the key's last request, refused or not."""
        key, key_id = await shop.open_account("a", "enterprise", 1, 9)
        other = await shop.store.keys.issue("a", "test", ACTOR)
        await shop.ask("GET", "/v1/pets", key=key)
        shop.clock.advance(5)
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 429
        await days(shop, 2)
        assert (await shop.store.keys.get(key_id)).last_used_at_ms == shop.clock.now_ms()
        assert (await shop.store.keys.get(other.record.id)).last_used_at_ms is None


async def usage(shop: Shop, key: str) -> dict[str, Any]:
    """The answer of GET /usage, which costs one."""
    answer = await shop.ask("GET", "/v1/usage", key=key)
    assert answer.status == 200
    document: dict[str, Any] = answer.json()
    return document


class TestGetUsage:
    """GET /usage: the plan, the windows with the request itself, the key, and 90 days."""

    async def test_the_whole_answer(self, shop: Shop) -> None:
        """The answer tells when a key expires, and has a day without requests with zeros."""
        await shop.store.accounts.add("a", FREE, "cli:tests")
        today = shop.clock.now_ms() // DAY_MS
        issued = await shop.store.keys.issue("a", "test", "cli:tests", expires_at_ms=shop.clock.now_ms() + 1)
        assert await usage(shop, issued.secret) == {
            "account": "a",
            "plan": "free",
            "perMinute": 60,
            "perDay": 1_000,
            "minute": {"used": 1, "resetAt": "2027-01-15T08:01:30.000Z"},
            "day": {"used": 1, "resetAt": "2027-01-16T00:00:00.000Z"},
            "key": {"access": "write", "expiresAt": "2027-01-15T08:00:30.001Z", "bannedUntil": None},
            "days": [
                {"date": "2027-01-15", "requests": 1, "refused": 0, "deprecated": 0},
                *(
                    {"date": iso_day(today - age), "requests": 0, "refused": 0, "deprecated": 0}
                    for age in range(1, 90)
                ),
            ],
        }

    async def test_windows_agree_with_the_headers(self, shop: Shop) -> None:
        """Used and remaining add up to the limit, this request included, also after a change of plan."""
        key, _ = await shop.open_account("a", "enterprise", 10, 20)
        await shop.ask("GET", "/v1/pets", key=key)
        for per_minute in (10, 5):
            await shop.store.accounts.set_plan(
                "a", Plan("enterprise", limits_of(per_minute, 20)), "cli:tests"
            )
            answer = await shop.ask("GET", "/v1/usage", key=key)
            used = answer.json()["minute"]["used"]
            assert answer.json()["perMinute"] == per_minute
            assert f'"minute";r={per_minute - used};t=60' in answer.headers["ratelimit"]
        assert used == 3

    async def test_days_over_midnight(self, shop: Shop) -> None:
        """Yesterday as it was written, today as it is counted, and nothing older than 90 days."""
        key, _ = await shop.open_account("a", "pro")
        today = shop.clock.now_ms() // DAY_MS
        old = {(2, today - age): DailyUsage(today - age, age) for age in (88, 89, 90)}
        await shop.store.counters.save(LimiterState(), UsageChanges(old))
        await shop.ask("GET", "/v1/pets/1", key=key)
        shop.clock.advance(86_400)
        await days(shop, 2)
        first, second, *_, last = (await usage(shop, key))["days"]
        assert (first["date"], first["requests"], first["deprecated"]) == ("2027-01-16", 1, 0)
        assert (second["date"], second["requests"], second["deprecated"]) == ("2027-01-15", 1, 1)
        assert (last["date"], last["requests"]) == (iso_day(today - 88), 88)

    async def test_every_level_may_read_it_and_head_has_no_body(self, shop: Shop) -> None:
        """It costs one, HEAD included, and takes no query parameters."""
        head = await shop.ask("HEAD", "/v1/usage")
        assert (head.status, head.body) == (200, b"")
        assert (await usage(shop, shop.key))["minute"]["used"] == 2
