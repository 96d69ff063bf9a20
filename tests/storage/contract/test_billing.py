"""What every store has for bills."""

from __future__ import annotations

from petstore.core.billing import BilledAccount, BilledDays
from petstore.core.durations import DAY_MS
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import BUSINESS, FREE, PRO, Plan
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.storage.store import Store
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR


async def bill(store: Store, first: int, last: int) -> list[BilledDays]:
    """The bill of all accounts, read one account at a time."""
    accounts: list[BilledAccount] = []
    while page := await store.billing.accounts(first, last, accounts[-1].id if accounts else 0, 1):
        accounts += page
    assert accounts == await store.billing.accounts(first, last, 0, 100)
    return [row for account in accounts for row in account.bill(first, last)]


async def test_plans_that_applied(store: Store, clock: ManualClock) -> None:
    """Each day has the plan at its end, through changes of the name, of one number, and to the same."""
    first = clock.now_ms() // DAY_MS
    await store.accounts.add("still", FREE, ACTOR)
    await store.accounts.add("shop", FREE, ACTOR)
    for plan in (PRO, BUSINESS, BUSINESS, Plan("enterprise", (5, 50)), Plan("enterprise", (5, 60))):
        clock.advance(86_400)
        await store.accounts.set_plan("shop", FREE, ACTOR)
        await store.accounts.set_plan("shop", plan, ACTOR)
    rows = await bill(store, first - 3, first + 9)
    assert [(row.plan.name, *row.plan.limits) for row in rows if row.account == "still"] == (
        [("free", 60, 1_000)] * 10
    )
    assert [(row.plan.name, *row.plan.limits) for row in rows if row.account == "shop"] == [
        ("free", 60, 1_000),
        ("pro", 300, 10_000),
        ("business", 1_000, 100_000),
        ("business", 1_000, 100_000),
        ("enterprise", 5, 50),
        *[("enterprise", 5, 60)] * 5,
    ]


async def test_counts_of_these_days_and_accounts(
    backend: SharedData, store: Store, clock: ManualClock
) -> None:
    """A bill has no day outside its period, and no account that is not there, whatever the journal has."""
    first = clock.now_ms() // DAY_MS
    for name in ("a", "b", "c"):
        await store.accounts.add(name, FREE, ACTOR)
        await store.accounts.set_plan(name, PRO, ACTOR)
    backend.execute("DELETE FROM accounts WHERE id = 2")
    days = {
        (account, day): DailyUsage(day, 100 * account + day - first, 7, 9)
        for account in (1, 2, 3, 4)
        for day in range(first - 1, first + 4)
    }
    await store.counters.save(LimiterState(), UsageChanges(days))
    rows = await bill(store, first, first + 2)
    assert [(row.account_id, row.requests, row.refused, row.deprecated) for row in rows] == [
        (account, 100 * account + day, 7, 9) for account in (1, 3) for day in range(3)
    ]


@through_pgbouncer_too
async def test_closed_accounts_and_those_from_before_the_journal(
    backend: SharedData, store: Store, clock: ManualClock
) -> None:
    """A closed account is billed until its day; without entries in the journal its plan is today's."""
    first = clock.now_ms() // DAY_MS
    await store.accounts.add("shop", FREE, ACTOR)
    await store.accounts.set_plan("shop", PRO, ACTOR)
    backend.execute(f"UPDATE accounts SET closed_at_ms = {clock.now_ms() + DAY_MS}")
    backend.execute("DELETE FROM journal")
    rows = await bill(store, first, first + 9)
    assert [(row.account, row.plan.name) for row in rows] == [("shop", "pro")] * 2
