"""What is counted for reports: requests, refusals and calls of the deprecated operation, and the last use."""

from __future__ import annotations

from petstore.core.limits.usage import DailyUsage, UsageReport
from tests.api.checks import CheckedShop
from tests.support.journal import ACTOR

DAY_MS = 86_400_000


async def days(shop: CheckedShop, account_id: int) -> list[DailyUsage]:
    """The report of an account, after everything counted was written."""
    await shop.application.service.flusher.save()
    report: UsageReport = await shop.store.usage.report(account_id, shop.clock.now_ms())
    return report.days


class TestUsage:
    """Counts by account and UTC day."""

    async def test_what_is_counted(self, shop: CheckedShop) -> None:
        """Admitted requests whatever their status, 429 as refused, 401 and OPTIONS not at all; each call with
        a key of the deprecated operation, HEAD, 410 and 429 included, and no other method on its path."""
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
        shop.clock.set_seconds(1_922_659_200)
        await shop.ask("GET", "/v1/pets/1", key=key)
        assert [(day.requests, day.deprecated) for day in await days(shop, 2)] == [(1, 1)]

    async def test_nothing_is_lost_by_a_clean_stop(self, shop: CheckedShop) -> None:
        """What was counted before and after a restart adds up."""
        key, _ = await shop.open_account("a", "pro")
        for _ in range(3):
            await shop.ask("GET", "/v1/pets/1", key=key)
            await shop.restart()
        assert [(day.requests, day.deprecated) for day in await days(shop, 2)] == [(3, 3)]

    async def test_last_use(self, shop: CheckedShop) -> None:
        """Of the key that was used, refused or not, at the time of the request."""
        key, key_id = await shop.open_account("a", "enterprise", 1, 9)
        other = await shop.store.keys.issue("a", "test", ACTOR)
        await shop.ask("GET", "/v1/pets", key=key)
        shop.clock.advance(5)
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 429
        await days(shop, 2)
        assert (await shop.store.keys.key(key_id)).last_used_at_ms == shop.clock.now_ms()
        assert (await shop.store.keys.key(other.record.id)).last_used_at_ms is None
