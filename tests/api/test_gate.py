"""The gate's bargain with its limiter: a caller is kept under the version that a decision confirms (I14)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from petstore.api.pipeline.gate import Gate, Refused
from petstore.api.pipeline.request import read_request
from petstore.core.digests import digest
from petstore.core.keys import Access, Caller, mint
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import OnDecision
from petstore.core.limits.decision import Decision
from petstore.core.limits.usage import UsageMeter
from petstore.core.versions import Version, Versions
from petstore.http.exchange import Exchange
from petstore.http.heads import Head
from petstore.limiter.address_limiter import AddressLimiter
from petstore.limiter.memory import MemoryLimiter
from tests.support.clock import ManualClock
from tests.support.versions import SteeredVersions
from tests.support.windows import limits_of
from tools.exchanges import Wire

KEY = mint("test")


class Keys:
    """The one caller of a store, how often it was read, and a moment to act right after a read."""

    def __init__(self) -> None:
        self.caller: Caller | None = Caller(1, 1, limits_of(60, 1_000))
        self.reads = 0
        self.after_read: Callable[[], None] = lambda: None

    async def find_caller(self, key_digest: bytes) -> Caller | None:
        assert key_digest == digest(KEY.encode())
        self.reads += 1
        found = self.caller
        self.after_read()
        return found


class LateLimiter(MemoryLimiter):
    """Knows, between decisions, only the version of the last one: as with counters elsewhere."""

    seen: Version | None = None

    async def take(self, caller: Caller, cached_version: Version | None = None) -> Any:
        decision = super().try_take(caller, cached_version)
        if decision is not None:
            self.seen = decision.versions.keyring
        return decision

    def try_take(self, *_: object) -> None:
        """Somebody else has to be asked."""

    def take_later(self, caller: Caller, cached_version: Version | None, callback: OnDecision) -> bool:
        decision = super().try_take(caller, cached_version)
        asyncio.get_running_loop().call_soon(callback, caller, decision)
        return True

    def keyring_version(self) -> Version | None:
        return self.seen


class Entrance:
    """A gate on its own."""

    def __init__(self, clock: ManualClock) -> None:
        self.keys = Keys()
        self.versions = SteeredVersions()
        self.limiter = LateLimiter(clock, BanPolicy(), self.versions)
        self.gate = Gate(
            keys=self.keys,
            limiter=self.limiter,
            addresses=AddressLimiter(clock, 600),
            meter=UsageMeter(),
            clock=clock,
        )

    async def ask(self) -> int:
        """One request; what the minute has left after it."""
        head = [(b"host", b"x"), (b"authorization", f"Bearer {KEY}".encode())]
        request = read_request(Exchange(Wire(), "GET", b"/v1/pets", b"", Head(head), ("192.0.2.1", 1)))
        if not self.gate.try_admit(request, Access.READ, False):
            told: asyncio.Future[tuple[Caller, Decision | None]] = asyncio.get_running_loop().create_future()
            decision = None
            if self.gate.take_later(request, lambda *facts: told.set_result(facts)):
                caller, decision = await told
            if decision is None:
                await self.gate.admit(request, Access.READ, False)
            else:
                self.gate.apply_decision(request, caller, decision, Access.READ, False)
        assert isinstance(request.decision, Decision)
        return request.decision.remaining[0]


@pytest.fixture
def entrance(clock: ManualClock) -> Entrance:
    return Entrance(clock)


class TestKeeping:
    """When a caller is kept, and when it may be used."""

    async def test_kept_once_two_decisions_agree(self, entrance: Entrance) -> None:
        """The first request knows no version before its read, so the second reads too; then none does."""
        assert [await entrance.ask() for _ in range(5)] == [59, 58, 57, 56, 55]
        assert entrance.keys.reads == 2

    async def test_a_moved_version_is_one_more_read_and_one_request(self, entrance: Entrance) -> None:
        """The refused take took nothing: the quota falls by one for each request."""
        for _ in range(3):
            await entrance.ask()
        entrance.versions.now = Versions(1, 2)
        assert await entrance.ask() == 56
        assert await entrance.ask() == 55
        assert await entrance.ask() == 54
        assert entrance.keys.reads == 4

    async def test_nothing_is_kept_or_used_while_the_version_is_unknown(self, entrance: Entrance) -> None:
        """A writer is at work, or the counters are out of reach: everybody reads."""
        for _ in range(3):
            await entrance.ask()
        entrance.versions.now = Versions(None, None)
        for _ in range(4):
            await entrance.ask()
        assert entrance.keys.reads == 6

    async def test_a_change_between_version_and_read_is_never_kept(self, entrance: Entrance) -> None:
        """Read before the change, decided after it: the caller serves this request and no other."""
        await entrance.ask()

        def revoke() -> None:
            entrance.keys.caller = Caller(1, 1, limits_of(60, 1_000), revoked_at_ms=1)
            entrance.versions.now = Versions(1, 2)
            entrance.keys.after_read = lambda: None

        entrance.keys.after_read = revoke
        await entrance.ask()
        with pytest.raises(Refused, match="revoked"):
            await entrance.ask()

    async def test_a_revoked_key_takes_nothing(self, entrance: Entrance) -> None:
        """401 costs the account nothing."""
        for _ in range(3):
            await entrance.ask()
        entrance.keys.caller = Caller(1, 1, limits_of(60, 1_000), revoked_at_ms=1)
        entrance.versions.now = Versions(1, 2)
        with pytest.raises(Refused, match="revoked"):
            await entrance.ask()
        entrance.keys.caller = Caller(1, 1, limits_of(60, 1_000))
        assert await entrance.ask() == 56

    async def test_a_kept_key_past_its_end_is_read_afresh(
        self, entrance: Entrance, clock: ManualClock
    ) -> None:
        """The refusal of a key is never outdated: an end that was moved meanwhile is seen."""
        entrance.keys.caller = Caller(1, 1, limits_of(60, 1_000), expires_at_ms=clock.now_ms() + 1_000)
        for _ in range(3):
            await entrance.ask()
        clock.advance(1)
        with pytest.raises(Refused, match="expired"):
            await entrance.ask()
        entrance.keys.caller = Caller(1, 1, limits_of(60, 1_000), expires_at_ms=clock.now_ms() + 1_000)
        assert await entrance.ask() == 56
