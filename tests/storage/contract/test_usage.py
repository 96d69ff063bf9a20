"""What every counter store keeps over a restart, and what every report shows."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from petstore.core.durations import DAY_MS
from petstore.core.limits.bans import BanPolicy, BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE
from petstore.core.limits.usage import (
    BannedKey,
    DailyUsage,
    KeyBan,
    UsageChanges,
)
from petstore.core.limits.windows import AccountWindows
from petstore.storage.store import Store
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.windows import used_of


@pytest.fixture
async def store(backend: SharedData) -> Store:
    """Two accounts with two keys each."""
    opened = backend.open()
    for name in ("a", "b"):
        await opened.accounts.add(name, FREE, ACTOR)
        for _ in range(2):
            await opened.keys.issue(name, "test", ACTOR)
    return opened


class TestCounters:
    """Absolute values of the limiter's state; sums of the usage."""

    async def test_a_state_comes_back_as_it_was_saved(
        self, backend: SharedData, store: Store, clock: ManualClock
    ) -> None:
        """Every number, over a restart; what is saved later replaces it."""
        now_ms, day = clock.now_ms(), clock.now_ms() // DAY_MS
        state = LimiterState(
            {1: used_of((now_ms, 3), (day, 30)), 2: used_of((now_ms - 5, 60), (day, 1_000))},
            {1: BanState(1, 2, 3, 4, 5, 6, 7, 8), 4: BanState(banned_until_ms=now_ms + 1)},
        )
        await store.counters.save(state, UsageChanges())
        await store.counters.save(LimiterState({1: used_of((now_ms, 4), (day, 31))}, {}), UsageChanges())
        await store.close()
        state.windows[1] = used_of((now_ms, 4), (day, 31))
        assert await backend.open().counters.load(now_ms) == state

    async def test_windows_older_than_yesterday_do_not_matter(self, store: Store, clock: ManualClock) -> None:
        """A day back, and any day ahead: the clock may be set while the service is down."""
        today = clock.now_ms() // DAY_MS
        kept = {1: today, 2: today - 1, 3: today + 1, 4: today + 400}
        used = {n: used_of((clock.now_ms(), 1), (day, 1)) for n, day in (kept | {5: today - 2}).items()}
        await store.counters.save(LimiterState(used, {}), UsageChanges())
        assert (await store.counters.load(clock.now_ms())).windows == {n: used[n] for n in kept}

    async def test_a_ban_that_is_long_over_does_not_matter(self, store: Store, clock: ManualClock) -> None:
        """A start reads no key that was neither banned nor refused in the time that counts and a day."""
        since_ms = BanPolicy(forgiven_after_ms=DAY_MS).matter_since_ms(clock.now_ms())
        assert clock.now_ms() - since_ms == 2 * DAY_MS
        over = BanState(7, since_ms, 1, since_ms, 2, since_ms - 9, since_ms, 5)
        kept = {
            2: BanState(level=1, banned_from_ms=since_ms, banned_until_ms=since_ms + 1),
            3: BanState(refused_reset_at=7, first_refused_ms=since_ms + 1),
            4: BanState(level=1, banned_from_ms=clock.now_ms(), banned_until_ms=clock.now_ms() + DAY_MS),
        }
        await store.counters.save(LimiterState({}, {1: over, **kept}), UsageChanges())
        assert (await store.counters.load(clock.now_ms(), since_ms)).bans == kept

    @through_pgbouncer_too
    async def test_a_batch_is_one_transaction(self, store: Store, clock: ManualClock) -> None:
        """A batch of which one line can't be written leaves nothing of itself behind."""
        used = AccountWindows.of(clock.now_ms(), 1, clock.now_ms() // DAY_MS, 1)
        usage = UsageChanges({(1, 7): DailyUsage(7, 5), (2, 7): DailyUsage(7, "many")}, {1: 5})  # type: ignore[arg-type]
        with pytest.raises(Exception, match="could not carry out"):
            await store.counters.save(LimiterState({1: used}, {}), usage)
        assert await store.counters.load(clock.now_ms()) == LimiterState()
        assert (await store.usage.report(clock.now_ms(), 1)).days == []


class TestReport:
    """An account's windows, bans and days, as last written."""

    async def test_standing_bans_of_its_keys(self, store: Store, clock: ManualClock) -> None:
        """Only those that last: not one that is over, not another account's."""
        now_ms = clock.now_ms()
        bans = {
            1: BanState(level=2, banned_from_ms=now_ms, banned_until_ms=now_ms + 1),
            2: BanState(level=1, banned_from_ms=now_ms - 9, banned_until_ms=now_ms),
            3: BanState(level=1, banned_from_ms=now_ms, banned_until_ms=now_ms + 1),
        }
        await store.counters.save(LimiterState({}, bans), UsageChanges())
        shown = (await store.keys.get(1)).display
        assert (await store.usage.report(now_ms, 1)).bans == [KeyBan(1, shown, 2, now_ms + 1, now_ms)]

    async def test_standing_bans_of_all_accounts(self, store: Store, clock: ManualClock) -> None:
        """Only what an operator can lift: not a ban that is over or pardoned, nor of a key that has ended. By
        their ends, and by pages; the overview counts the same."""
        now_ms = clock.now_ms()
        await store.accounts.add("third", FREE, ACTOR)
        for label, ends in (("stays", now_ms + 9), ("ended", now_ms), ("revoked", None), ("lifted", None)):
            await store.keys.issue("third", "live", ACTOR, label=label, expires_at_ms=ends)
        stays, _, revoked, lifted = await store.keys.of_account("third")
        await store.keys.revoke(revoked.id, ACTOR)
        ban = BanState(level=3, banned_from_ms=now_ms, banned_until_ms=now_ms + 1)
        over = BanState(level=1, banned_from_ms=now_ms - 9, banned_until_ms=now_ms)
        keys = await store.keys.of_account("third")
        await store.keys.pardon(lifted.id, ACTOR)
        later = BanState(level=3, banned_from_ms=now_ms, banned_until_ms=now_ms + 2)
        bans = {1: later, 2: over} | {key.id: ban for key in keys}
        await store.counters.save(LimiterState({}, bans), UsageChanges())
        first = await store.keys.get(1)
        account = await store.accounts.find("1")
        third = await store.accounts.find("third")
        by_end = [
            BannedKey(third.id, "third", stays.id, stays.display, "stays", 3, now_ms + 1),
            BannedKey(1, account.name, 1, first.display, first.label, 3, now_ms + 2),
        ]
        assert await store.usage.bans(now_ms) == by_end
        assert (await store.totals.count(now_ms, ZoneInfo("UTC"))).banned_keys == len(by_end)
        assert await store.usage.bans(now_ms, limit=1) == by_end[:1]
        assert await store.usage.bans(now_ms, after=(now_ms + 1, stays.id), limit=1) == by_end[1:]

    async def test_days_are_summed_and_listed_newest_first(self, store: Store, clock: ManualClock) -> None:
        """Batches of the same day add up."""
        today = clock.now_ms() // DAY_MS
        for day, requests in ((today - 1, 5), (today, 1), (today, 2)):
            usage = UsageChanges({(1, day): DailyUsage(day, requests, 10, 100)})
            await store.counters.save(LimiterState(), usage)
        assert (await store.usage.report(clock.now_ms(), 1)).days == [
            DailyUsage(today, 3, 20, 200),
            DailyUsage(today - 1, 5, 10, 100),
        ]


async def test_no_more_deprecated_calls_are_read_than_a_page_waits_for(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest ones, and the report says that there are others."""
    monkeypatch.setattr("petstore.transactions.usage._DEPRECATED_READ", 2)
    today = clock.now_ms() // DAY_MS
    for age in range(3):
        usage = UsageChanges({(1, today - age): DailyUsage(today - age, 1, 0, 1)})
        await store.counters.save(LimiterState(), usage)
    found = await store.usage.deprecated_callers(clock.now_ms())
    assert ([caller.calls for caller in found.callers], found.is_cut) == ([2], True)
