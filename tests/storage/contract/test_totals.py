"""What every store counts."""

from __future__ import annotations

import asyncio
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from petstore.core.durations import DAY_MS
from petstore.core.errors import StoreUnavailable
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE, Plan
from petstore.core.limits.usage import DailyUsage, DeprecatedCalls, DeprecatedUse, UsageChanges
from petstore.core.orders import NewOrder, OrderStatus
from petstore.core.pets import NewPet, PetChange, PetStatus
from petstore.core.totals import NAMED_MAX, NearLimit, Sales, Totals, weeks_at
from petstore.storage.store import Store
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.windows import limits_of, used_of

_UTC, _NEW_YORK = ZoneInfo("UTC"), ZoneInfo("America/New_York")


async def add_accounts(store: Store, count: int) -> None:
    for number in range(1, count + 1):
        await store.accounts.add(f"a{number}", FREE, ACTOR)


@through_pgbouncer_too
async def test_an_empty_store_has_a_zero_for_everything(store: Store, clock: ManualClock) -> None:
    """Each state is there, so that a page needs no other case."""
    assert await store.totals.count(clock.now_ms(), _UTC) == Totals(
        {PetStatus.AVAILABLE: 0, PetStatus.PENDING: 0, PetStatus.SOLD: 0},
        {},
        dict.fromkeys(OrderStatus, 0),
        {"active": 0, "suspended": 0, "closed": 0},
        DailyUsage(clock.now_ms() // DAY_MS),
        0,
        [],
        [],
        Sales(dict.fromkeys(weeks_at(clock.now_ms(), _UTC)[:-1], 0), {}),
    )


async def test_animals_orders_and_accounts_by_state(store: Store, clock: ManualClock) -> None:
    """An ordered animal counts as pending, a closed account as closed even if it was suspended."""
    await add_accounts(store, 4)
    await store.accounts.suspend("a2", ACTOR)
    await store.accounts.suspend("a3", ACTOR)
    await store.accounts.close("a3", ACTOR)
    for status in (PetStatus.AVAILABLE, PetStatus.AVAILABLE, PetStatus.AVAILABLE, PetStatus.SOLD):
        await store.pets.add(NewPet("Rex", 1, status), ACTOR)
    await store.pets.add(NewPet("Rex", -7), ACTOR)
    for pet_id in (1, 2):
        await store.orders.place(1, NewOrder(pet_id), ACTOR)
    await store.orders.change(2, ACTOR, status=OrderStatus.APPROVED)
    counted = await store.totals.count(clock.now_ms(), _UTC)
    assert counted.pets == {PetStatus.AVAILABLE: 2, PetStatus.PENDING: 2, PetStatus.SOLD: 1}
    available, pending, sold = PetStatus
    assert list(counted.categories.items()) == [
        (1, {available: 1, pending: 2, sold: 1}),
        (-7, {available: 1, pending: 0, sold: 0}),
    ]
    assert counted.orders == dict.fromkeys(OrderStatus, 0) | {
        OrderStatus.PLACED: 1,
        OrderStatus.APPROVED: 1,
    }
    assert counted.accounts == {"active": 2, "suspended": 1, "closed": 1}


async def test_sales_by_week_and_by_category(store: Store, clock: ManualClock) -> None:
    """A delivered order is of its ship date's week, and of its animal's category now, or of removed animals.

    Weeks begin on Monday, 00:00, in the zone; the first one here has an hour more. No sale are an order that
    waits and one of an earlier or a coming week.
    """
    await add_accounts(store, 1)
    weeks = weeks_at(clock.now_ms(), _NEW_YORK)
    assert weeks[:2] == tuple(
        datetime(2026, month, day, tzinfo=_NEW_YORK).timestamp() * 1_000 for month, day in ((10, 26), (11, 2))
    )
    shipped = [weeks[0] - 1, weeks[0], weeks[1] - 1, weeks[1], weeks[-1] - 1, weeks[-1], None]
    for number, at_ms in enumerate(shipped, 1):
        await store.pets.add(NewPet("Rex", number), ACTOR)
        await store.orders.place(1, NewOrder(number), ACTOR)
        await store.orders.change(number, ACTOR, status=OrderStatus.APPROVED)
        if at_ms is not None:
            await store.orders.change(number, ACTOR, status=OrderStatus.DELIVERED, ship_date_ms=at_ms)
    await store.pets.change(4, PetChange(category_id=2), ACTOR)
    await store.pets.remove(5, ACTOR)
    counted = (await store.totals.count(clock.now_ms(), _NEW_YORK)).sales
    sold = {weeks[0]: 2, weeks[1]: 1, weeks[-2]: 1}
    assert list(counted.weeks.items()) == [(week, sold.get(week, 0)) for week in weeks[:-1]]
    assert counted.categories == {2: 2, 3: 1, None: 1}


async def test_usage_of_today_and_who_calls_the_deprecated_operation(
    store: Store, clock: ManualClock
) -> None:
    """Sums are today's alone. Callers are those of thirty days with their last one, the busiest first; nobody
    who calls other operations alone."""
    await add_accounts(store, 3)
    today = clock.now_ms() // DAY_MS
    days = {
        (1, today): DailyUsage(today, 10, 1, 4),
        (2, today): DailyUsage(today, 20, 2, 0),
        (1, today - 1): DailyUsage(today - 1, 99, 99, 3),
        (3, today - 29): DailyUsage(today - 29, 99, 99, 90),
        (2, today - 30): DailyUsage(today - 30, 99, 99, 99),
    }
    await store.counters.save(LimiterState(), UsageChanges(days))
    counted = await store.totals.count(clock.now_ms(), _UTC)
    assert counted.today == DailyUsage(today, 30, 3, 4)
    assert counted.deprecated_callers == [
        DeprecatedCalls(3, "a3", 90, today - 29),
        DeprecatedCalls(1, "a1", 7, today),
    ]
    found = await store.usage.deprecated_callers(clock.now_ms())
    assert found == DeprecatedUse(counted.deprecated_callers, is_cut=False)


async def test_accounts_near_their_limit(store: Store, clock: ManualClock) -> None:
    """They have used nine tenths of today's limit, the fullest first, a few; no closed one, nobody of
    yesterday."""
    await add_accounts(store, NAMED_MAX + 5)
    await store.accounts.add("tiny", Plan("enterprise", limits_of(1, 1)), ACTOR)
    await store.accounts.close("a4", ACTOR)
    today = clock.now_ms() // DAY_MS
    used = {1: 899, 2: 900, 3: 1_000, 4: 1_000, 5: 1_000, NAMED_MAX + 6: 0}
    windows = {account: used_of((0, 0), (today, count)) for account, count in used.items()}
    windows[5] = used_of((0, 0), (today - 1, 1_000))
    await store.counters.save(LimiterState(windows), UsageChanges())
    counted = await store.totals.count(clock.now_ms(), _UTC)
    assert counted.near_limit == [NearLimit(3, "a3", 1_000, 1_000), NearLimit(2, "a2", 900, 1_000)]
    full = {number: used_of((0, 0), (today, 1_000)) for number in range(1, NAMED_MAX + 6)}
    await store.counters.save(LimiterState(full), UsageChanges())
    counted = await store.totals.count(clock.now_ms(), _UTC)
    assert [use.id for use in counted.near_limit] == [1, 2, 3, 5, 6, 7]


async def test_a_count_can_be_cancelled(store: Store, clock: ManualClock) -> None:
    """A count can be cancelled, since a service that ends does not wait for it; the next count is whole."""
    counting = asyncio.create_task(store.totals.count(clock.now_ms(), _UTC))
    await asyncio.sleep(0)
    counting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await counting
    assert (await store.totals.count(clock.now_ms(), _UTC)).banned_keys == 0


async def test_a_store_that_cannot_count_says_so(
    backend: SharedData, store: Store, clock: ManualClock
) -> None:
    """A store that cannot count raises StoreUnavailable, as for every other reading."""
    backend.execute("ALTER TABLE usage_days RENAME TO elsewhere")
    with pytest.raises(StoreUnavailable):
        await store.totals.count(clock.now_ms(), _UTC)
