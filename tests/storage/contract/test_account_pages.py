"""What every store has for a list of accounts."""

from __future__ import annotations

import pytest

from petstore.core.accounts import AccountPage, AccountQuery
from petstore.core.durations import DAY_MS
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import BUSINESS, FREE, PRO
from petstore.core.limits.usage import UsageChanges
from petstore.core.limits.windows import AccountWindows
from petstore.storage.store import Store
from petstore.transactions import account_pages
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR

NAMES = ("shop", "Zoo", "a-z", "7up", "Shop", "shop-2", "zoo.b", "_x")
BY_NAME = ["7up", "_x", "a-z", "Shop", "shop", "shop-2", "Zoo", "zoo.b"]
BY_NAME.sort(key=lambda name: (name.lower(), name))


@pytest.fixture
async def store(backend: SharedData) -> Store:
    """Eight accounts, the odd ones on Pro; one suspended, two closed, one of them while it was suspended."""
    opened = backend.open()
    for number, name in enumerate(NAMES):
        await opened.accounts.add(name, PRO if number % 2 else FREE, ACTOR)
    for name in ("a-z", "Zoo"):
        await opened.accounts.suspend(name, ACTOR)
    for name in ("Zoo", "_x"):
        await opened.accounts.close(name, ACTOR)
    return opened


def names(page: AccountPage) -> list[str]:
    return [each.account.name for each in page.accounts]


async def walk(store: Store, clock: ManualClock, query: AccountQuery) -> list[str]:
    """The names on all pages that a reader comes to."""
    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = await store.accounts.page(
            clock.now_ms(), AccountQuery(query.limit, query.search, query.state, query.plan, after)
        )
        assert len(page.accounts) <= query.limit
        found += names(page)
        after = page.next_start
    return found


@every_case("limit", [1, 3, 8])
async def test_all_are_listed_by_name_each_once(store: Store, clock: ManualClock, limit: int) -> None:
    """Whatever the case, also where two differ by it alone and the page ends between them. A full page may be
    the last one."""
    assert (await store.accounts.page(clock.now_ms(), AccountQuery(8))).next_start is None
    assert await walk(store, clock, AccountQuery(limit)) == BY_NAME


class TestFilters:
    """The beginning of the name, the state and the plan combine."""

    @through_pgbouncer_too
    async def test_a_text_finds_the_accounts_whose_names_begin_with_it(
        self, store: Store, clock: ManualClock
    ) -> None:
        """It finds them in pages; what can't begin a name finds nothing."""
        for query, found in (
            (AccountQuery(2, "sho"), ["Shop", "shop", "shop-2"]),
            (AccountQuery(2, "SHOP-"), ["shop-2"]),
            (AccountQuery(2, "zoo."), ["zoo.b"]),
            (AccountQuery(2, "hop"), []),
            (AccountQuery(2, "%"), []),
            (AccountQuery(2, "\x00"), []),
            (AccountQuery(2, "x" * 65), []),
            (AccountQuery(2, state="suspended"), ["a-z"]),
            (AccountQuery(2, state="closed"), ["_x", "Zoo"]),
            (AccountQuery(2, state="active"), ["7up", "Shop", "shop", "shop-2", "zoo.b"]),
            (AccountQuery(2, plan="pro"), ["_x", "7up", "shop-2", "Zoo"]),
            (AccountQuery(2, "zoo", plan="pro"), ["Zoo"]),
            (AccountQuery(2, state="closed", plan="pro"), ["_x", "Zoo"]),
            (AccountQuery(2, "s", state="active", plan="free"), ["Shop", "shop"]),
            (AccountQuery(2, plan="business"), list[str]()),
        ):
            expected = sorted(found, key=lambda name: (name.lower(), name))
            assert await walk(store, clock, query) == expected, query

    async def test_an_id_is_found_too(self, store: Store, clock: ManualClock) -> None:
        """First, once, and only if the other filters let it through."""
        now_ms = clock.now_ms()
        assert names(await store.accounts.page(now_ms, AccountQuery(9, "7"))) == ["zoo.b", "7up"]
        assert names(await store.accounts.page(now_ms, AccountQuery(9, "7", after="7up"))) == []
        assert names(await store.accounts.page(now_ms, AccountQuery(9, "2", state="active"))) == []
        assert names(await store.accounts.page(now_ms, AccountQuery(9, "2", plan="pro"))) == ["Zoo"]
        assert names(await store.accounts.page(now_ms, AccountQuery(9, "9" * 30))) == []

    async def test_a_look_is_bounded(
        self, store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A page without a match says where to look further; in the end all are found."""
        monkeypatch.setattr(account_pages, "ACCOUNTS_SCANNED_MAX", 2)
        query = AccountQuery(5, state="active", plan="pro")
        page = await store.accounts.page(clock.now_ms(), query)
        assert (names(page), page.next_start) == (["7up"], "_x")
        assert await walk(store, clock, query) == ["7up", "shop-2"]


@pytest.mark.parametrize(("days", "used"), [(0, 30), (-1, 0), (1, 30)])
async def test_use_is_of_the_running_utc_day(store: Store, clock: ManualClock, days: int, used: int) -> None:
    """Yesterday's window is over; one that lies ahead, after the clock was set back, counts."""
    window = AccountWindows.of(clock.now_ms(), 3, clock.now_ms() // DAY_MS + days, 30)
    await store.counters.save(LimiterState({1: window}, {}), UsageChanges())
    await store.accounts.set_plan("1", BUSINESS, ACTOR)
    page = await store.accounts.page(clock.now_ms(), AccountQuery(9, "shop"))
    assert [(each.account.plan, each.used_today) for each in page.accounts] == [
        (FREE, 0),
        (BUSINESS, used),
        (PRO, 0),
    ]


async def test_accounts_by_their_ids(store: Store, clock: ManualClock) -> None:
    """uses() returns those accounts of the given ids that exist, and none for no ids."""
    found = await store.accounts.uses(clock.now_ms(), (1, 3, 99))
    assert sorted(use.account.name for use in found) == ["a-z", "shop"]
    assert await store.accounts.uses(clock.now_ms(), ()) == []


async def test_accounts_are_counted_where_an_index_has_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All, those of a plan, the suspended and the closed ones, up to a bound."""

    async def count(state: str | None = None, plan: str | None = None) -> int | None:
        return await store.accounts.count(AccountQuery(1, "", state, plan))

    assert [await count(), await count("suspended"), await count("closed")] == [len(NAMES), 1, 2]
    assert await count(plan="pro") == len(NAMES) // 2
    assert [await count("active"), await count("closed", "pro")] == [None, None]
    monkeypatch.setattr(account_pages, "COUNTED_MAX", 3)
    assert await count() == 4
