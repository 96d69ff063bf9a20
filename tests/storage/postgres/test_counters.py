"""The counter store of several processes: what is later stands, in whatever order they write."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from petstore.core.clock import Clock, SystemClock
from petstore.core.durations import DAY_MS
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.limits.windows import AccountWindows
from petstore.storage.options import PostgresOptions
from petstore.storage.postgres.store import PostgresStore
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import run
from tests.support.windows import used_of

DAY = ManualClock().now_ms() // DAY_MS
NOW_MS = ManualClock().now_ms()


@pytest.fixture
async def store(database: str, clock: Clock) -> AsyncIterator[PostgresStore]:
    """An account with a key."""
    opened = PostgresStore(database, clock, PostgresOptions())
    await opened.accounts.add("shop", FREE, ACTOR)
    await opened.keys.issue("shop", "test", ACTOR)
    yield opened
    await opened.close()


async def merge_windows(store: PostgresStore, *seen: AccountWindows) -> AccountWindows | None:
    """What is recalled of account 1 after these were merged one by one."""
    for used in seen:
        await store.counters.merge(LimiterState({1: used}), UsageChanges())
    return (await store.counters.load_for(0, 1, 1))[0]


async def merge_standings(store: PostgresStore, *seen: BanState) -> BanState | None:
    """Merge what two replicas have counted for the standing of key 1."""
    for ban in seen:
        await store.counters.merge(LimiterState({}, {1: ban}), UsageChanges())
    return (await store.counters.load_for(0, 1, 1))[1]


class TestWindows:
    """Minute and day are merged each by itself."""

    async def test_what_one_process_alone_writes_is_kept_as_it_is(self, store: PostgresStore) -> None:
        """`save` is for a clock that may have been set back: there the last word stands."""
        await store.counters.save(LimiterState({1: used_of((9_000, 9), (DAY, 9))}), UsageChanges())
        await store.counters.save(LimiterState({1: used_of((1_000, 1), (DAY - 1, 1))}), UsageChanges())
        assert (await store.counters.load_for(NOW_MS, 1, 1))[0] == used_of((1_000, 1), (DAY - 1, 1))

    @given(
        seen=st.lists(
            st.builds(
                AccountWindows.of,
                st.integers(0, 3),
                st.integers(0, 9),
                st.integers(DAY - 1, DAY),
                st.integers(0, 9),
            ),
            min_size=1,
            max_size=5,
        )
    )
    @example(seen=[used_of((1_000, 9), (DAY, 9)), used_of((61_000, 2), (DAY - 1, 900))])
    @settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    async def test_any_order_leads_to_the_same(
        self, store: PostgresStore, seen: list[AccountWindows]
    ) -> None:
        """Merges in any order lead to the same: a maximum over pairs (opening, count) and (day, count)."""
        await store._database.write_rows("DELETE FROM account_windows")
        minute = max(used.numbers()[:2] for used in seen)
        day = max(used.numbers()[2:] for used in seen)
        assert await merge_windows(store, *seen) == AccountWindows.of(*minute, *day)


class TestStandings:
    """The later pardon, then the later ban, then the later strikes."""

    ORDER = (
        BanState(strikes=1, strikes_opened_ms=10, refused_reset_at=5),
        BanState(strikes=9, strikes_opened_ms=10, refused_reset_at=5),
        BanState(strikes=2, strikes_opened_ms=20, refused_reset_at=9),
        BanState(level=1, banned_from_ms=30, banned_until_ms=90),
        BanState(level=1, banned_from_ms=30, banned_until_ms=90, strikes=1, strikes_opened_ms=100),
        BanState(level=2, banned_from_ms=110, banned_until_ms=500),
        BanState(pardoned_ms=120),
        BanState(pardoned_ms=120, strikes=3, strikes_opened_ms=130),
    )

    async def test_the_later_stands_in_either_order(self, store: PostgresStore) -> None:
        """Whole: no member is taken from another one."""
        for earlier, later in itertools.combinations(self.ORDER, 2):
            for pair in ((earlier, later), (later, earlier)):
                await store._database.write_rows("DELETE FROM key_standings")
                assert await merge_standings(store, *pair) == later


@pytest.mark.parametrize("clock", [ManualClock(), SystemClock()], ids=["steered", "system"])
class TestAClockThatWasAhead:
    """Valkey's, and it was corrected: counts of the future by the steered or the server's clock give way."""

    AHEAD_MS = 3_600_000

    async def test_windows_of_the_future_give_way(self, store: PostgresStore, clock: Clock) -> None:
        """Both, by themselves; while the clock is still ahead the later one of the future stands."""
        now_ms = clock.now_ms()
        day = now_ms // DAY_MS
        ahead = used_of((now_ms + self.AHEAD_MS, 5), (day + 2, 50))
        later = AccountWindows.of(now_ms + 2 * self.AHEAD_MS, 1, day + 2, 51)
        assert await merge_windows(store, ahead, later) == later
        assert await merge_windows(store, ahead) == later
        right = used_of((now_ms, 6), (day, 60))
        assert await merge_windows(store, right) == right
        assert await merge_windows(store, later) == right

    async def test_a_ban_of_the_future_gives_way(self, store: PostgresStore, clock: Clock) -> None:
        """A ban of the future yields to the same ban with corrected times, not to one before a pardon."""
        now_ms = clock.now_ms()
        from_ms = now_ms + self.AHEAD_MS
        ahead = BanState(level=1, banned_from_ms=from_ms, banned_until_ms=from_ms + 9, pardoned_ms=7)
        right = BanState(level=1, banned_from_ms=now_ms, banned_until_ms=now_ms + 9, pardoned_ms=7)
        older = BanState(level=1, banned_from_ms=now_ms, banned_until_ms=now_ms + 9)
        assert await merge_standings(store, ahead, older) == ahead
        assert await merge_standings(store, right) == right


class TestUsage:
    """Sums add up; the last use is the latest."""

    async def test_usage_of_several_batches_adds_up_by_account_and_day(self, store: PostgresStore) -> None:
        """Each replica saves batches of its own."""
        for requests, used_ms in ((1, 500), (2, 900), (4, 700)):
            usage = UsageChanges({(1, DAY): DailyUsage(DAY, requests, 10, 100)}, {1: used_ms})
            await store.counters.merge(LimiterState(), usage)
        assert (await store.usage.report(NOW_MS, 1)).days == [DailyUsage(DAY, 7, 30, 300)]
        assert (await store.keys.get(1)).last_used_at_ms == 900


class TestRecall:
    """What an emptied limiter asks for."""

    @pytest.mark.parametrize(("age_days", "kept"), [(-3, True), (0, True), (1, True), (2, False)])
    async def test_windows_older_than_yesterday_do_not_matter(
        self, store: PostgresStore, age_days: int, kept: bool
    ) -> None:
        """Windows older than yesterday are not loaded, as at a start; the key's standing always is."""
        used, ban = used_of((1, 2), (DAY - age_days, 3)), BanState(level=1, banned_until_ms=9)
        await store.counters.merge(LimiterState({1: used}, {1: ban}), UsageChanges())
        assert await store.counters.load_for(NOW_MS, 1, 1) == (used if kept else None, ban)

    async def test_a_batch_is_one_statement(self, database: str, store: PostgresStore) -> None:
        """A large one, too: one commit for a thousand accounts."""
        commits = "SELECT count(*) FROM account_windows GROUP BY xmin"
        windows = {n: used_of((1, 1), (DAY, 1)) for n in range(1, 1_001)}
        await store.counters.merge(LimiterState(windows), UsageChanges())
        assert run(database, commits) == [(1_000,)]
