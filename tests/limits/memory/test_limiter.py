"""What only the limiter in memory has: batches of changes, and forgetting what can't matter any more."""

from __future__ import annotations

import pytest

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.versions import Versions
from petstore.limiter import address_limiter
from petstore.limiter.address_limiter import AddressLimiter
from petstore.limiter.memory import MemoryLimiter
from tests.support.clock import ManualClock
from tests.support.versions import SteeredVersions
from tests.support.windows import limits_of, used_of

FREE = Caller(1, 1, limits_of(60, 1_000))


class TestDrain:
    """What changed since the last batch."""

    async def test_only_what_changed_and_only_once(self, clock: ManualClock) -> None:
        """Accounts by what passed, keys by what was refused."""
        limiter = MemoryLimiter(clock, BanPolicy(), SteeredVersions())
        assert limiter.drain() == LimiterState()
        await limiter.take(FREE)
        changed = limiter.drain()
        assert (list(changed.windows), list(changed.bans)) == ([1], [])
        assert limiter.drain() == LimiterState()
        for _ in range(60):
            await limiter.take(FREE)
        assert list(limiter.drain().bans) == [1]

    async def test_a_batch_does_not_change_after_it_was_taken(self, clock: ManualClock) -> None:
        """It is on its way to the disk while the counting goes on."""
        limiter = MemoryLimiter(clock, BanPolicy(), SteeredVersions())
        await limiter.take(FREE)
        changed = limiter.drain()
        await limiter.take(FREE)
        assert changed.windows[1].used[0] == 1


class TestForgetting:
    """Memory follows the accounts that are active."""

    async def test_records_are_forgotten_once_they_cannot_matter(self, clock: ManualClock) -> None:
        """A window after its day, a ban a day after it would have been forgiven; not before."""
        windows = {1: used_of((clock.now_ms(), 5), (clock.now_ms() // 86_400_000, 5))}
        bans = {1: BanState(level=1, banned_until_ms=clock.now_ms())}
        limiter = MemoryLimiter(clock, BanPolicy(), SteeredVersions(), LimiterState(windows, bans))
        limiter.drain()
        assert (list(windows), list(bans)) == ([1], [1])
        clock.advance(86_400)
        limiter.drain()
        assert (list(windows), list(bans)) == ([], [1])
        clock.advance(86_400)
        limiter.drain()
        assert list(bans) == []

    async def test_a_window_that_reaches_over_midnight_is_kept(self, clock: ManualClock) -> None:
        """The minute that began before midnight still counts after it."""
        clock.set_seconds((clock.now_ms() // 86_400_000 + 1) * 86_400 - 1)
        limiter = MemoryLimiter(clock, BanPolicy(), SteeredVersions())
        for _ in range(60):
            await limiter.take(FREE)
        clock.advance(2)
        limiter.drain()
        decision = await limiter.take(FREE)
        assert decision is not None
        assert not decision.allowed


class TestAddresses:
    """Failed authentications by client address."""

    def test_the_number_of_remembered_addresses_is_bounded(
        self, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Past 100,000 the one whose window opened first is forgotten."""
        assert address_limiter._ADDRESSES_MAX == 100_000
        monkeypatch.setattr(address_limiter, "_ADDRESSES_MAX", 100)
        limiter = AddressLimiter(clock, 1)
        for number in range(101):
            limiter.charge(f"10.0.0.{number}")
        assert limiter.peek("10.0.0.0").allowed
        assert not limiter.peek("10.0.0.1").allowed

    def test_an_address_that_is_known_for_long_is_not_forgotten_first(
        self, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What counts is when the current window opened: others can't push a used-up one out by their age."""
        monkeypatch.setattr(address_limiter, "_ADDRESSES_MAX", 3)
        limiter = AddressLimiter(clock, 1)
        for address in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
            limiter.charge(address)
        clock.advance(60)
        limiter.charge("192.0.2.1")
        limiter.charge("192.0.2.4")
        limiter.charge("192.0.2.5")
        assert not limiter.charge("192.0.2.1").allowed
        assert not limiter.charge("192.0.2.4").allowed

    def test_a_window_is_not_younger_for_its_later_failures(
        self, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An address that opens its next window is not counted twice: it pushes nobody out."""
        monkeypatch.setattr(address_limiter, "_ADDRESSES_MAX", 2)
        limiter = AddressLimiter(clock, 2)
        for address in ("192.0.2.1", "192.0.2.2", "192.0.2.1", "192.0.2.3"):
            clock.advance(1)
            limiter.charge(address)
        assert [limiter.peek(f"192.0.2.{last}").binding.remaining for last in (1, 2, 3)] == [2, 1, 1]
        clock.advance(59)  # only the window of .2 has ended
        limiter.charge("192.0.2.2")
        assert [limiter.peek(f"192.0.2.{last}").binding.remaining for last in (2, 3)] == [1, 1]


class TestVersions:
    """A decision brings the versions of its moment; a caller that was kept passes only while they stand."""

    async def test_a_caller_kept_under_another_keyring_takes_nothing(self, clock: ManualClock) -> None:
        """take() returns None where the keyring's version has moved or is unknown; the caller calls again."""
        versions = SteeredVersions()
        limiter = MemoryLimiter(clock, BanPolicy(), versions)
        version = limiter.keyring_version()
        assert await limiter.take(FREE, version) is not None
        for now in (Versions(1, 2), Versions(1, None)):
            versions.now = now
            assert await limiter.take(FREE, version) is None
        decision = await limiter.take(FREE)
        assert decision is not None
        assert (decision.windows[0].remaining, decision.versions) == (58, Versions(1, None))

    async def test_every_decision_brings_the_versions(self, clock: ManualClock) -> None:
        """Whether it admits, refuses or bans."""
        versions = SteeredVersions()
        limiter = MemoryLimiter(clock, BanPolicy(strikes_allowed=1, grace_ms=0), versions)
        caller = Caller(1, 1, limits_of(1, 10))
        for milliseconds in (0, 0, 1, 1, 1):
            clock.ms += milliseconds
            decision = await limiter.take(caller)
            assert decision is not None
            assert decision.versions is versions.now
        assert decision is not None
        assert decision.banned
