"""The limiter of many processes: records in Valkey, decided by take.lua in one round trip.

quota.py makes the Decision from the reply. During an outage fallback.py decides.
"""

from __future__ import annotations

from petstore.core.clock import Clock
from petstore.core.errors import LimiterUnavailable
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState
from petstore.core.limits.counters import LimiterState, MergingCounterStore, OnDecision
from petstore.core.limits.decision import Decision
from petstore.core.limits.quota import ban_decision, decisions_for, free_decision, refusal_for
from petstore.core.limits.windows import AccountWindows
from petstore.core.versions import Version
from petstore.limiter.valkey.batching import BatchedTakes
from petstore.limiter.valkey.calls import (
    ADMITTED,
    BAN_BEGAN,
    MOVED,
    NEEDS_RECORDS,
    NOT_CACHED,
    REFUSED,
    Cached,
    Calls,
)
from petstore.limiter.valkey.client import ValkeyClient
from petstore.limiter.valkey.connection import Unreachable
from petstore.limiter.valkey.fallback import FallbackLimiter
from petstore.limiter.valkey.lease import Lease, Leases, Token
from petstore.limiter.valkey.recovery import RecoveryCache, as_text

# New epochs during one request after which its data set counts as unreachable.
_EPOCHS_MAX = 3


class ValkeyLimiter:
    """Implements counters.Limiter for all processes that share one Valkey and one store."""

    def __init__(
        self,
        client: ValkeyClient,
        counters: MergingCounterStore,
        clock: Clock,
        policy: BanPolicy,
        fallback: FallbackLimiter | None = None,
    ) -> None:
        """`fallback` decides during an outage; without one every request then raises LimiterUnavailable."""
        self._client = client
        self._calls = Calls(client.scripts.take, policy)
        self._recovery = RecoveryCache(clock, counters)
        self._fallback = fallback
        self._clock = clock
        self._observer = client.observer
        self._leases = Leases(client, clock)
        self._batched = BatchedTakes(client, self._calls, clock, self._read_group)

    async def take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        return await self._take(caller, cached_version, 1)

    async def peek(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        return await self._take(caller, cached_version, 0)

    async def _take(self, caller: Caller, cached_version: Version | None, requests: int) -> Decision | None:
        # Before the call is sent: an outage may begin before its reply is read.
        lease, cached = self._leases.of_now(), NOT_CACHED
        if cached_version is not None:
            if not isinstance(cached_version, Token) or cached_version.lease is not lease:
                return None
            cached = (cached_version.number, lease.ends_ms)
        if not self._client.is_up:
            return self._decide_locally(caller, cached_version, requests)
        try:
            reply = await self._ask(caller, cached, requests)
        except Unreachable:
            return self._decide_locally(caller, cached_version, requests)
        decisions = self._read(caller, reply, lease, requests)
        return decisions[0] if decisions else None

    def try_take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        return None

    def take_later(self, caller: Caller, cached_version: Version | None, callback: OnDecision) -> bool:
        version, fallback = cached_version, self._fallback
        if not isinstance(version, Token):
            return False
        if self._batched.join(caller, version, callback):
            return True
        if version.lease is not self._leases.of_now() or not self._client.is_up:
            return False
        if fallback is not None and caller.account_id in fallback.pending:
            return False
        return self._batched.begin(caller, version, callback)

    def keyring_version(self) -> Version | None:
        return self._leases.keyring_version() if self._client.is_up else None

    def drain(self) -> LimiterState:
        if self._fallback is not None:
            self._fallback.sweep()
        return self._recovery.drain()

    def saved(self) -> None:
        self._recovery.saved()

    async def _ask(self, caller: Caller, cached: Cached, requests: int) -> list[int]:
        """The script's reply. Raises Unreachable, and StoreUnavailable where records come from the store."""
        fallback = self._fallback if requests else None
        if fallback is not None and (pending := fallback.pending.pop(caller.account_id, None)) is not None:
            return await self._ask_with_pending(fallback, caller, cached, pending)
        reply = await self._call(self._calls.take(caller, cached, (), requests))
        if reply[0] != NEEDS_RECORDS:
            return reply
        return await self._ask_with_records(caller, cached, reply[1], requests)

    async def _ask_with_records(
        self, caller: Caller, cached: Cached, epoch: int, requests: int, *pending: bytes
    ) -> list[int]:
        """Call with restored records, again when a new epoch has begun meanwhile."""
        for _ in range(_EPOCHS_MAX):
            records = await self._recovery.restore(caller, epoch)
            more = (b"%d" % epoch, *records, *pending)
            reply = await self._call(self._calls.take(caller, cached, more, requests))
            if reply[0] != NEEDS_RECORDS:
                return reply
            epoch = reply[1]
        raise Unreachable("its data set changes again and again")

    async def _ask_with_pending(
        self, fallback: FallbackLimiter, caller: Caller, cached: Cached, pending: AccountWindows
    ) -> list[int]:
        """Call with an account's pending counts. They stay pending when the outcome is unknown: a count may
        then be taken twice, and none is lost."""
        counted = False
        text = as_text(pending.numbers())
        try:
            reply = await self._call(self._calls.take(caller, cached, (b"-", b"", b"", text)))
            if reply[0] == NEEDS_RECORDS:
                reply = await self._ask_with_records(caller, cached, reply[1], 1, text)
            counted = reply[0] != MOVED
        finally:
            if not counted:
                fallback.restore_pending(caller.account_id, pending)
        return reply

    async def _call(self, command: bytes) -> list[int]:
        began = self._clock.monotonic()
        replies: list[list[int]] = await self._client.call(self._client.scripts.take, command)
        self._observer.asked(self._clock.monotonic() - began)
        return replies[0]

    def _read(self, caller: Caller, reply: list[int], lease: Lease, requests: int) -> list[Decision]:
        """The Decisions of a number of requests, or of a peek; none where the Caller is outdated."""
        kind = reply[0]
        versions = self._leases.current(reply, lease)
        if kind in (ADMITTED, REFUSED):
            windows = AccountWindows.of(*reply[4:])
            if kind == REFUSED:
                return [refusal_for(windows, caller, reply[3], versions)]
            if not requests:
                return [free_decision(windows, caller, reply[3], versions)]
            self._recovery.note_windows(caller.account_id, windows)
            return decisions_for(windows, caller, reply[3], versions, requests)
        if kind == MOVED:
            return []
        from_ms, until_ms, level, pardoned_ms = reply[4:]
        ban = BanState(level=level, banned_from_ms=from_ms, banned_until_ms=until_ms, pardoned_ms=pardoned_ms)
        self._recovery.note_ban(caller.key_id, ban)
        return [ban_decision(caller, ban, reply[3], versions, began=kind == BAN_BEGAN)] * max(1, requests)

    def _read_group(self, caller: Caller, reply: list[int], version: Token, requests: int) -> list[Decision]:
        return [] if reply[0] == NEEDS_RECORDS else self._read(caller, reply, version.lease, requests)

    def _decide_locally(
        self, caller: Caller, cached_version: Version | None, requests: int
    ) -> Decision | None:
        if cached_version is not None:
            return None
        self._observer.decided_locally()
        if self._fallback is None:
            raise LimiterUnavailable("The limits can't be counted at the moment; try again soon.")
        return self._fallback.take(caller) if requests else self._fallback.peek(caller)
