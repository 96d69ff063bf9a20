"""The console's page of bills."""

from __future__ import annotations

import asyncio
import json

import pytest

from petstore.core.billing import BilledAccount
from petstore.core.durations import DAY_MS
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE, PRO
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.lists import bills
from petstore.core.moments import iso_day
from petstore.core.people import Role
from tests.cli.conftest import Cli
from tests.support.cases import every_case
from tests.support.console import Visitor
from tests.support.journal import ACTOR
from tests.support.service import Shop


@pytest.fixture
async def year(shop: Shop) -> Shop:
    """Forty days with three accounts; one changed its plan, one has a name like a formula."""
    for name in ("-1", "zoo"):
        await shop.store.accounts.add(name, FREE, ACTOR)
    shop.clock.advance(40 * 86_400)
    await shop.store.accounts.set_plan("zoo", PRO, ACTOR)
    today = shop.clock.now_ms() // DAY_MS
    days = {
        (account, day): DailyUsage(day, day % 97, account, 1)
        for account in (1, 3)
        for day in range(today - 40, today)
    }
    await shop.store.counters.save(LimiterState(), UsageChanges(days))
    return shop


async def printed(shop: Shop, *arguments: str) -> bytes:
    """What the command prints of the bill of all accounts."""
    cli = Cli(shop.path.parent, shop.clock)
    run = await asyncio.to_thread(cli.run, "usage", "--all", *arguments)
    assert run.exit_code == 0, run.output
    return run.stdout_bytes


def day(shop: Shop, ago: int) -> str:
    return iso_day(shop.clock.now_ms() // DAY_MS - ago)


class TestFile:
    """`/console/billing/bill`."""

    @every_case("form", ["csv", "json"])
    @every_case("summed", [False, True])
    async def test_the_same_bytes_as_the_command(
        self, year: Shop, operator: Visitor, monkeypatch: pytest.MonkeyPatch, form: str, summed: bool
    ) -> None:
        """However many accounts are read at once."""
        first, last = day(year, 35), day(year, 1)
        options = [f"--{form}", *(["--sum"] if summed else [])]
        expected = await printed(year, "--from", first, "--to", last, *options)
        assert expected.count(b"\n") > 3
        for days_at_once in (1, 2_000):
            monkeypatch.setattr(bills, "_PAGE_DAYS", days_at_once)
            found = await operator.get(
                f"billing/bill?first={first}&last={last}&form={form}{'&sum=on' if summed else ''}"
            )
            assert found.body == expected
        sums = "-sums" if summed else ""
        assert found.headers["content-disposition"] == (
            f'attachment; filename="petstore-{first}-to-{last}{sums}.{form}"'
        )
        assert found.headers["cache-control"] == "no-store"

    @pytest.mark.parametrize(
        ("change", "seconds", "is_cut"),
        [
            ("sign out", 1, True),
            ("disable", 1, True),
            ("demote", 1, True),
            ("nothing", 1, False),
            ("sign out", 0.9, False),
        ],
    )
    async def test_it_is_cut_off_when_its_reader_may_not_have_it_any_more(
        self, year: Shop, monkeypatch: pytest.MonkeyPatch, change: str, seconds: float, is_cut: bool
    ) -> None:
        """A bill whose reader lost the right ends unfinished before its next account: one look a second."""
        store, reader = year.store, await Visitor(year).sign_in_as("operator", "anna")
        anna, read = await store.people.find("anna"), store.billing.accounts
        reads = 0

        async def read_and_change(*page: int) -> list[BilledAccount]:
            nonlocal reads
            reads += 1
            if reads == 1:
                year.clock.advance(seconds)
                if change == "sign out":
                    await store.sign_ins.end_sessions(anna, ACTOR)
                elif change == "disable":
                    await store.people.disable("anna", ACTOR, keeps_operator=False)
                elif change == "demote":
                    await store.people.set_role("anna", Role.STAFF, ACTOR, keeps_operator=False)
            accounts: list[BilledAccount] = await read(*page)
            return accounts

        monkeypatch.setattr(store.billing, "accounts", read_and_change)
        monkeypatch.setattr(bills, "_PAGE_DAYS", 1)
        found = await reader.get(f"billing/bill?first={day(year, 35)}&last={day(year, 1)}&form=json")
        assert (found.status, reads) == (200, 1 if is_cut else 4)
        assert found.body.endswith(b"\n]\n") is not is_cut

    async def test_a_month_until_today(self, year: Shop, operator: Visitor) -> None:
        """The current month ends with today, as the command's does."""
        month = day(year, 0)[:7]
        found = await operator.get(f"billing/bill?month={month}&form=csv")
        assert found.body == await printed(year, "--month", month, "--csv")


class TestPage:
    """`/console/billing`."""

    async def test_it_begins_with_the_last_month_that_is_over_unread(
        self, year: Shop, operator: Visitor
    ) -> None:
        """Nothing is read before somebody asks."""
        shown = await operator.get("billing")
        ended = iso_day(year.clock.now_ms() // DAY_MS)[:7]
        assert shown.form("billing").fields["month"] < ended
        assert "Download" not in shown.text

    async def test_the_first_rows_and_the_files(self, year: Shop, operator: Visitor) -> None:
        """The links have the days that the rows are of."""
        shown = await operator.get("billing")
        first, last = day(year, 9), day(year, 0)
        found = await operator.submit(shown, "billing", month="", first=first, last=last)
        assert f"{first} to {last}" in found.text
        assert f"Not final: {last} is not over (UTC)" in found.text
        assert f"{first} enterprise" in found.text
        address = found.links["Download JSON"].partition("console/")[2]
        rows = json.loads((await operator.get(address)).body)
        assert {row["account"] for row in rows} == {"tests", "-1", "zoo"}

    async def test_a_short_bill_is_shown_whole(self, year: Shop, operator: Visitor) -> None:
        """A row for each account; none for a day before there were accounts."""
        today, before = day(year, 0), day(year, 60)
        shown = await operator.get(f"billing?first={today}&last={today}")
        assert f"-1 {today} free" in shown.text
        assert f"zoo {today} pro" in shown.text
        shown = await operator.get(f"billing?first={before}&last={before}&sum=on")
        assert "The first accounts were not open on these days." in shown.text
