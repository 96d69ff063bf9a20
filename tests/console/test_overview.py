"""The overview: its numbers, what waits, what was changed, and what is wrong."""

from __future__ import annotations

import asyncio
from zoneinfo import ZoneInfo

import pytest

from petstore.console import overview
from petstore.console.overview import notices_of
from petstore.console.statistics import Counted, Statistics
from petstore.core.errors import StoreUnavailable
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE
from petstore.core.limits.usage import DailyUsage, DeprecatedCalls, UsageChanges
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.pets import NewPet, PetStatus
from petstore.core.totals import NearLimit, Sales, Totals
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.console import Visitor
from tests.support.journal import ACTOR
from tests.support.service import Shop

FRAGMENT = [("hx-request", "true")]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages wait until the store is counted."""
    monkeypatch.setattr("petstore.console.statistics._WAIT_SECONDS", 30)


@pytest.mark.usefixtures("counted")
async def test_the_store_in_numbers(shop: Shop, viewer: Visitor) -> None:
    """Animals, orders and accounts by state, and the requests of today, with the time of the count."""
    store, today = shop.store, shop.clock.now_ms() // 86_400_000
    for status in (PetStatus.AVAILABLE, PetStatus.AVAILABLE, PetStatus.SOLD):
        await store.pets.add(NewPet("Rex", 1, status), ACTOR)
    await store.orders.place(1, NewOrder(1), ACTOR)
    await store.accounts.add("late", FREE, ACTOR)
    await store.accounts.suspend("late", ACTOR)
    await store.counters.save(LimiterState(), UsageChanges({(1, today): DailyUsage(today, 1_200, 7, 3)}))
    text = (await viewer.get()).text
    assert "Animals 1 available 1 pending, 1 sold" in text
    assert "Orders 1 waiting 1 to approve, 0 to deliver" in text
    assert "Requests today (UTC) 1,207 7 of them refused" in text
    assert "Accounts 1 active 1 suspended, 0 closed" in text
    assert "Counted less than a second ago." in text


@pytest.mark.usefixtures("counted")
async def test_stock_and_sales(shop: Shop, viewer: Visitor) -> None:
    """A bar and a row for each of six categories and one for all others, and for each week; or a sentence."""
    shown = await viewer.get()
    assert "No animal is in the store." in shown.text
    assert shown.text.count("No order was delivered in these 12 weeks.") == 2
    store, day_ms = shop.store, 86_400_000
    for category in range(1, 9):
        for _ in range(category):
            await store.pets.add(NewPet("Rex", category), ACTOR)
    await store.categories.name(8, "Dogs & cats", ACTOR)
    for pet_id, days_ago in enumerate((0, 0, 7, 90), 1):
        await store.orders.place(1, NewOrder(pet_id), ACTOR)
        for status in (OrderStatus.APPROVED, OrderStatus.DELIVERED):
            at_ms = shop.clock.now_ms() - days_ago * day_ms
            await store.orders.change(pet_id, ACTOR, status=status, ship_date_ms=at_ms)
    await store.orders.place(1, NewOrder(36), ACTOR)
    shop.clock.advance(60)
    shown = await viewer.get()
    assert "Category Available Pending Sold Dogs & cats 7 1 0 Category 7 7 0 0" in shown.text
    assert "Category 3 2 0 1 Other categories 0 0 3" in shown.text
    assert b'<rect class="part1" x="0.0%" width="87.5%" height="100%"/>' in shown.body
    assert b'<rect class="part2" x="87.5%" width="12.5%" height="100%"/>' in shown.body
    assert "2027-01-11 2 2027-01-04 1" in shown.text
    assert "Category Orders delivered Category 2 2 Category 1 1" in shown.text


async def test_no_page_waits_for_a_count(
    shop: Shop, viewer: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes: the page is there without the numbers, and asks for them soon."""

    async def never(_now_ms: int, _zone: ZoneInfo) -> Totals:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(shop.store.totals, "count", never)
    async with asyncio.timeout(10):
        shown = await viewer.get()
    assert "The store is being counted." in shown.text
    assert b'hx-trigger="every 2s"' in shown.body


@pytest.mark.usefixtures("counted")
async def test_it_refreshes_itself(viewer: Visitor) -> None:
    """The part of the page that changes comes every ten seconds; charts come again each hour."""
    shown = await viewer.get()
    assert b'hx-get="./console" hx-trigger="every 10s"' in shown.body
    assert b'hx-headers=\'{"x-charts": "500000"}\'' in shown.body
    part = await viewer.get(headers=[*FRAGMENT, ("x-charts", "500000")])
    assert b'<div id="charts-500000" hx-preserve>\n</div>' in part.body
    assert "Stock and sales" in (await viewer.get(headers=[*FRAGMENT, ("x-charts", "499999")])).text
    assert part.body.strip().startswith(b'<div id="now"')
    assert b"<html" not in part.body
    assert "Last changes" in part.text


async def test_it_stops_when_the_session_ends(viewer: Visitor) -> None:
    """The browser goes to the sign-in page then; from a search that goes on with what was typed."""
    viewer.cookies.clear()
    for page, sign_in in (("", "./console/sign-in"), ("pets?q=re", "../console/sign-in?next=pets%3Fq%3Dre")):
        answer = await viewer.get(page, headers=FRAGMENT, follow=False)
        assert (answer.status, answer.headers["hx-redirect"], answer.body) == (401, sign_in, b"")


async def test_a_long_address_is_not_led_back_to(viewer: Visitor) -> None:
    """Sign-in leads to no long address: a proxy refuses so large a head, and then avoids the replica."""
    viewer.cookies.clear()
    for page in (f"pets?q={'{' * 2_000}", f"pets/{'{' * 2_000}"):
        answer = await viewer.get(page, headers=[("accept", "text/html")], follow=False)
        assert (answer.status, answer.headers["location"].rpartition("/")[2]) == (303, "sign-in")


async def test_a_refresh_keeps_no_session_alive(shop: Shop, viewer: Visitor) -> None:
    """A page that nobody has touched for twelve hours has no session any more; one that is used has."""
    used = await Visitor(shop).sign_in_as("viewer", "busy")
    for _ in range(13):
        shop.clock.advance(3_600)
        left = await viewer.get(headers=[*FRAGMENT, ("x-unattended", "1")], follow=False)
        assert (await used.get(headers=FRAGMENT)).status == 200
    assert left.status == 401


async def test_who_waits_longest_comes_first(shop: Shop, viewer: Visitor) -> None:
    """A few orders, with the way to all others; none that is done."""
    for pet_id in range(1, 12):
        await shop.store.pets.add(NewPet("Rex", 1), ACTOR)
        await shop.store.orders.place(1, NewOrder(pet_id), ACTOR)
    await shop.store.orders.change(1, ACTOR, status=OrderStatus.CANCELLED)
    shown = await viewer.get()
    orders = [text for text, address in shown.links.items() if address.endswith(f"orders/{text}")]
    assert orders == [str(number) for number in range(2, 10)]
    assert shown.links["All orders that wait"].endswith("console/orders")


async def test_the_last_changes(shop: Shop, viewer: Visitor) -> None:
    """The newest ten entries of the journal, in words."""
    for number in range(12):
        shop.clock.advance(1)
        await shop.store.pets.add(NewPet(f"Pet {number}", 1), "console:anna")
    shown = await viewer.get()
    assert "anna console Animal added animal 12 name: Pet 11" in shown.text
    assert "name: Pet 2 " in shown.text
    assert "name: Pet 1 " not in shown.text
    assert shown.links["The whole journal"].endswith("console/journal")


class TestTroubles:
    """What is wrong, in words, and what to do."""

    @pytest.mark.usefixtures("counted")
    async def test_a_store_that_can_not_be_counted(
        self, shop: Shop, viewer: Visitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The page is there, and says that its numbers are missing."""

        async def refuse(_now_ms: int, _zone: ZoneInfo) -> Totals:
            raise StoreUnavailable("gone")

        monkeypatch.setattr(shop.store.totals, "count", refuse)
        assert "The store could not be counted" in (await viewer.get()).text

    async def test_a_slow_database_without_a_backup(
        self, viewer: Visitor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The overview says that there is no backup, and how long the page itself waited for the database."""
        monkeypatch.setattr(overview, "_SLOW_SECONDS", -1)
        text = (await viewer.get()).text
        assert "There is no backup yet." in text
        assert "The database is slow: this page waited 0.0 seconds for it." in text


FULL = [NearLimit(number, f"shop{number}", 990 + number, 1_000) for number in range(1, 7)]


def of(banned: int = 0, near: int = 0, calls: int = 0) -> Totals:
    callers = [DeprecatedCalls(9, "old", calls, 5)] if calls else []
    return Totals({}, {}, {}, {}, DailyUsage(0), banned, FULL[:near], callers, Sales({}, {}))


@every_case(
    ("totals", "days", "what", "about"),
    [
        (of(banned=1), 9, "1 key is banned: its program went on", {"bans": "All bans"}),
        (of(banned=2_000), 9, "2,000 keys are banned: their programs went on", {"bans": "All bans"}),
        (of(near=1), 9, "Near today's limit", {"accounts/1": "shop1 (991 of 1,000)"}),
        (of(calls=1_000), 365, "ends in 365 days.", {"accounts/9": "old (1,000)"}),
        (of(calls=1), 1, "ends in 1 day.", {"accounts/9": "old (1)"}),
        (of(calls=1), 0, "has ended.", {"accounts/9": "old (1)"}),
    ],
)
def test_what_the_count_has_found(totals: Totals, days: int, what: str, about: dict[str, str]) -> None:
    """Bans, accounts at their limit and callers of the deprecated operation, with the pages for them."""
    (notice,) = notices_of(totals, days)
    assert what in notice.what
    assert (dict(notice.about), notice.has_more) == (about, False)


def test_a_notice_names_a_few() -> None:
    """It names the fullest five of more accounts, and says that there are others; of none, nothing."""
    (notice,) = notices_of(of(near=6), 9)
    assert [page for page, _ in notice.about] == [f"accounts/{number}" for number in range(1, 6)]
    assert notice.has_more
    assert list(notices_of(of(), 9)) == []


@pytest.mark.usefixtures("counted")
async def test_a_notice_leads_to_the_account(
    shop: Shop, viewer: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who still calls the deprecated operation, with the days that are left, in its last year."""
    today = shop.clock.now_ms() // 86_400_000
    await shop.store.counters.save(LimiterState(), UsageChanges({(1, today): DailyUsage(today, 9, 0, 3)}))
    assert "Callers in the last" not in (await viewer.get()).text
    monkeypatch.setattr(overview, "_ENDS_SOON_DAYS", 1_500)
    shown = await viewer.get()
    name = (await shop.store.accounts.find("1")).name
    assert "GET /v1/pets/{petId} ends in 1,420 days. Callers in the last 30 days:" in shown.text
    assert shown.links[f"{name} (3)"].endswith("console/accounts/1")


async def test_mail_that_waits(shop: Shop, viewer: Visitor) -> None:
    """The overview says how many mails have waited for more than ten minutes, and since when."""
    store = shop.store
    for address in ("anna@example.com", "ben@example.com"):
        await store.contacts.add("person", "a-viewer", address, ACTOR)
    await store.notifications.gather()
    await store.pets.add(NewPet("Rex", 1), ACTOR)
    await store.orders.place(1, NewOrder(1), ACTOR)
    await store.notifications.gather()
    shop.clock.advance(600)
    assert "for 10 minutes" not in (await viewer.get()).text
    shop.clock.advance(1)
    assert "2 mails wait, the oldest for 10 minutes. The log says why" in (await viewer.get()).text
    await store.contacts.remove("person", "a-viewer", "ben@example.com", ACTOR)
    assert "1 mail waits for 10 minutes. The log" in (await viewer.get()).text


async def test_operators_see_who_is_signed_in(
    shop: Shop, viewer: Visitor, operator: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list has the role, since when, and when last seen; a person leads to where their sessions are
    ended."""
    sign_ins = shop.store.sign_ins
    shop.clock.advance(60)
    await sign_ins.accept(await sign_ins.take_attempt("a-viewer", "::1"), "::1")
    shop.clock.advance(60)
    shown = await operator.get()
    began, then, now = "2 minutes ago", "1 minute ago", "now"
    assert f"a-operator operator {began} {now} 1 a-viewer viewer {began} {then} 2 Open a person" in shown.text
    assert b'<td><a href="./console/people/of/a-viewer"><bdi' in shown.body
    assert "Signed in now" not in (await viewer.get()).text
    monkeypatch.setattr(overview, "_PEOPLE", 1)
    assert "There may be others: these were seen last." in (await operator.get()).text


TOTALS = of()


class SlowStore:
    """A store whose counts end when the test says so."""

    def __init__(self) -> None:
        self.counts: list[asyncio.Future[Totals]] = []

    async def count(self, now_ms: int, zone: ZoneInfo) -> Totals:
        self.counts.append(asyncio.get_running_loop().create_future())
        return await self.counts[-1]

    async def end(self, error: Exception | None = None) -> None:
        if error is None:
            self.counts[-1].set_result(TOTALS)
        else:
            self.counts[-1].set_exception(error)
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def look(statistics: Statistics) -> Counted | None:
    """What is shown; a count that this look began is under way then."""
    shown = await statistics.latest()
    await asyncio.sleep(0)
    return shown


@pytest.fixture
def store() -> SlowStore:
    return SlowStore()


@pytest.fixture
def statistics(store: SlowStore, clock: ManualClock) -> Statistics:
    return Statistics(store, clock, ZoneInfo("UTC"))


async def test_a_look_begins_a_count_which_a_stop_gives_up(store: SlowStore, statistics: Statistics) -> None:
    """Nothing is counted unless somebody looks; others join a count, and none is begun after the stop."""
    assert store.counts == []
    assert [await look(statistics), await look(statistics)] == [None, None]
    (count,) = store.counts
    await statistics.close()
    await look(statistics)
    assert (count.cancelled(), store.counts) == (True, [count])


@pytest.mark.parametrize(("took_seconds", "pause_seconds"), [(2, 40), (0, 5)])
async def test_the_pause_is_twenty_times_the_count(
    store: SlowStore, statistics: Statistics, clock: ManualClock, took_seconds: int, pause_seconds: int
) -> None:
    """Thus it takes 5 % of a core, however many look; after a quick count it is five seconds."""
    began_ms = clock.now_ms()
    await look(statistics)
    clock.advance(took_seconds)
    await store.end()
    clock.advance(pause_seconds - 1)
    latest = await look(statistics)
    assert latest is not None
    assert (latest.totals, latest.at_ms, len(store.counts)) == (TOTALS, began_ms, 1)
    clock.advance(1)
    await look(statistics)
    assert len(store.counts) == 2
    await statistics.close()


@pytest.mark.parametrize("error", [StoreUnavailable("gone"), RuntimeError("odd")])
async def test_a_failed_count_keeps_the_last_one(
    store: SlowStore, statistics: Statistics, clock: ManualClock, error: Exception
) -> None:
    """It says that it failed, and the next one is tried as always."""
    await look(statistics)
    await store.end()
    clock.advance(5)
    before = await look(statistics)
    await store.end(error)
    assert (statistics.failed, await look(statistics)) == (True, before)
    clock.advance(5)
    await look(statistics)
    await store.end()
    assert (statistics.failed, len(store.counts)) == (False, 3)
