"""The console's pages of accounts."""

from __future__ import annotations

import re

import pytest

from petstore.core.durations import DAY_MS
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import BUSINESS, FREE, PRO
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.limits.windows import AccountWindows
from petstore.core.moments import iso_day
from petstore.core.orders import NewOrder
from petstore.core.pets import NewPet
from tests.console.conftest import assert_refused, follow
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR, written
from tests.support.service import Shop
from tests.support.windows import used_of


async def add(shop: Shop, name: str = "zoo") -> int:
    return int((await shop.store.accounts.add(name, FREE, ACTOR)).id)


def names(shown: Shown) -> list[str]:
    """The accounts of a list, in its order."""
    return [text for text, address in shown.links.items() if re.search("console/accounts/[0-9]+$", address)]


class TestList:
    """`/console/accounts`."""

    async def test_it_shows_plan_state_and_todays_use(self, shop: Shop, viewer: Visitor) -> None:
        """The list has plan, state, use, and a way to add for operators; a live search gets rows alone."""
        account_id = await add(shop)
        today = shop.clock.now_ms() // DAY_MS
        window = AccountWindows.of(shop.clock.now_ms(), 3, today, 1_234)
        await shop.store.counters.save(LimiterState({account_id: window}, {}), UsageChanges())
        shown = await viewer.get("accounts?q=ZO")
        assert "zoo free 1,234 of 1,000 active" in shown.text
        assert "Add an account" not in shown.text
        live = await viewer.get("accounts?q=ZO", headers=[("hx-request", "true")])
        assert live.body.lstrip().startswith(b'<div id="rows"')
        assert live.body.strip() in shown.body
        assert "No accounts match." in (await viewer.get("accounts?q=nobody")).text

    async def test_each_account_is_on_one_page_of_the_list(
        self, shop: Shop, viewer: Visitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Pages go by name or, in a search for any part of it, the newest first; filters
        stay. The account whose number is sought is on the first alone."""
        monkeypatch.setattr("petstore.console.account_pages._ROWS", 2)
        for name in ("delta-2", "alpha-2", "gamma-2", "beta-2"):
            await add(shop, name)
        await shop.index()
        for query, found in (
            ("state=active", [["alpha-2", "beta-2"], ["delta-2", "gamma-2"], ["tests"]]),
            ("q=A-2&plan=free", [["beta-2", "gamma-2"], ["alpha-2", "delta-2"]]),
            ("q=2", [["delta-2", "beta-2", "gamma-2"], ["alpha-2"]]),
            ("q=%232", [["delta-2", "beta-2", "gamma-2"], ["alpha-2"]]),
        ):
            shown = await viewer.get(f"accounts?{query}")
            pages = [names(shown)]
            while "Next page" in shown.links:
                shown = await follow(viewer, shown, "Next page")
                pages.append(names(shown))
                assert shown.links["First page"].endswith(f"accounts?{query}")
            assert pages == found
        assert "2 of 5" in (await viewer.get("accounts")).text


async def test_an_account_is_added(shop: Shop, operator: Visitor) -> None:
    """The person adds it with the agreed numbers."""
    shown = await operator.fill(
        "accounts/new",
        "accounts/new",
        name="zoo",
        plan="enterprise",
        per_minute="5,000",
        per_day="2 000 000",
    )
    account = await shop.store.accounts.find("zoo")
    assert account.plan.limits == (5_000, 2_000_000)
    assert shown.address == f"/console/accounts/{account.id}"
    assert "Account zoo is added." in shown.text
    assert "a-operator console Account added" in shown.text


class TestAccount:
    """`/console/accounts/2`."""

    async def test_windows_and_days(self, shop: Shop, viewer: Visitor) -> None:
        """What is used, what is left, and the days as a chart and as a table."""
        account_id = await add(shop)
        now_ms = shop.clock.now_ms()
        today = now_ms // DAY_MS
        days = {
            (account_id, today - ago): DailyUsage(today - ago, 50 + ago, ago, 2 * ago) for ago in range(3)
        }
        await shop.store.counters.save(
            LimiterState({account_id: used_of((now_ms, 7), (today, 52))}, {}), UsageChanges(days)
        )
        shown = await viewer.get(f"accounts/{account_id}")
        assert "minute 60 7 53" in shown.text
        assert "day 1,000 52 948" in shown.text
        use = [f"{iso_day(today)} 52 0 0", f"{iso_day(today - 1)} 51 1 2", f"{iso_day(today - 2)} 52 2 4"]
        assert f"Deprecated {' '.join(use)} {iso_day(today - 3)} 0 0 0" in shown.text
        drawn = re.findall("<title>([^<]*): ([^<]*)</title>", shown.body.decode())
        assert [drawn[-1], drawn[-2]] == [
            (iso_day(today), "52 requests, 0 refused"),
            (iso_day(today - 1), "51 requests, 1 refused"),
        ]
        assert len(drawn) == 3  # days without a request are empty
        for name in ("Plan", "Suspend", "Issue", "Close"):
            assert name not in shown.links

    async def test_refused_requests_are_drawn_apart(self, shop: Shop, viewer: Visitor) -> None:
        """Refused requests have their own part of a bar, even alone on a day, and however few they are."""
        account_id, today = await add(shop), shop.clock.now_ms() // DAY_MS
        days = {
            (account_id, today): DailyUsage(today, 0, 7, 0),
            (account_id, today - 1): DailyUsage(today - 1, 100_000, 1, 0),
        }
        await shop.store.counters.save(LimiterState({}, {}), UsageChanges(days))
        body = (await viewer.get(f"accounts/{account_id}")).body.decode()
        bars = [
            re.findall('class="(part[12])".*? height="([0-9.]*)"', each) for each in body.split("<title>")[2:]
        ]
        assert bars == [[("part1", "100.0"), ("part2", "0.5")], [("part2", "0.5")]]
        assert re.findall(' y="([0-9.-]*)"', body) == ["0.0", "0.0", "99.5"]  # none is above the chart


class TestChanges:
    """Each by a form of its own, in the person's name."""

    async def test_plan_and_name(self, shop: Shop, operator: Visitor) -> None:
        """A plan's page shows the current use; it acts on the next request. The number stays."""
        account_id = await add(shop)
        asked = await operator.get(f"accounts/{account_id}/plan")
        assert "minute 60 0 60" in asked.text
        shown = await operator.submit(asked, "/plan", plan="pro")
        assert "zoo has the plan pro, from its next request on." in shown.text
        shown = await operator.fill(f"accounts/{account_id}/rename", "/rename", name="den")
        assert "The account is called den." in shown.text
        den = await shop.store.accounts.find("den")
        assert (den.id, den.plan) == (account_id, PRO)

    async def test_the_second_of_two_is_told_of_the_first(self, shop: Shop, operator: Visitor) -> None:
        """A plan and a name that another operator has changed meanwhile are replaced at the second try."""
        account_id = await add(shop)
        plan, name = [await operator.get(f"accounts/{account_id}/{page}") for page in ("plan", "rename")]
        await shop.store.accounts.set_plan("zoo", BUSINESS, ACTOR)
        await shop.store.accounts.rename("zoo", "ark", ACTOR)
        plan = await operator.submit(plan, "/plan", plan="pro")
        assert_refused(plan, 409, "ark has the plan business now")
        name = await operator.submit(name, "/rename", name="den")
        assert_refused(name, 409, "The account is called ark now.")
        assert (await shop.store.accounts.find("ark")).plan == BUSINESS
        await operator.submit(plan, "/plan")
        await operator.submit(name, "/rename")
        assert (await shop.store.accounts.find("den")).plan == PRO

    async def test_suspension_and_its_end(self, shop: Shop, operator: Visitor) -> None:
        """It asks, with the keys that it concerns; to resume needs no question."""
        asked = await operator.get("accounts/1/suspend")
        assert "the one active key of tests is refused with 403" in asked.text
        assert (await shop.ask("GET", "/v1/pets")).status == 200
        shown = await operator.submit(asked, "/suspend")
        assert "tests is suspended: its keys are refused until you resume it." in shown.text
        assert (await shop.ask("GET", "/v1/pets")).code == "account_suspended"
        await operator.submit(shown, "/resume")
        assert (await shop.ask("GET", "/v1/pets")).status == 200

    async def test_closing_asks_and_says_what_happens(self, shop: Shop, operator: Visitor) -> None:
        """A look changes nothing; then the keys are revoked, and the orders keep their animals."""
        await shop.store.pets.add(NewPet("Rex", 1), ACTOR)
        order = (await shop.store.orders.place(1, NewOrder(1), ACTOR)).order
        asked = await operator.get("accounts/1/close")
        assert "Its one active key is revoked" in asked.text
        assert f"order {order.id} (animal 1)" in asked.text
        assert (await shop.store.accounts.find("1")).state == "active"
        shown = await operator.submit(asked, "/close")
        assert "tests is closed, and its keys are revoked." in shown.text
        assert (await shop.ask("GET", "/v1/pets")).status == 401
        assert (await shop.store.orders.get(order.id)) == order
        assert "This account is closed already." in (await operator.get("accounts/1/close")).text

    async def test_a_closed_account_takes_no_change(self, shop: Shop, operator: Visitor) -> None:
        """Forms from before are refused with the reason, and its page offers none but another name."""
        account_id = await add(shop)
        forms = {
            name: await operator.get(f"accounts/{account_id}/{name}")
            for name in ("plan", "suspend", "keys/new")
        }
        page = await operator.get(f"accounts/{account_id}")
        await shop.store.accounts.close("zoo", ACTOR)
        before = await written(shop.store)
        for name, form in forms.items():
            shown = await operator.submit(form, f"/{name}")
            assert (shown.status, "is closed for good" in shown.text) == (409, True), name
        shown = await operator.submit(page, "/contacts", address="anna@zoo.example")
        assert_refused(shown, 409, "is closed for good")
        token = page.forms[0].fields
        assert (await operator.post(f"accounts/{account_id}/resume", token)).status == 409
        assert await written(shop.store) == before
        page = await operator.get(f"accounts/{account_id}")
        assert "Add an address" not in page.text
        links = page.links
        assert "Rename" in links
        assert not {"Issue a key", "Change plan", "Suspend", "Close"} & set(links)
