"""The limiter of many processes: records in Valkey, decided by take.lua in one round trip.

quota.py makes the Decision from the reply. During an outage fallback.py decides.
"""

from __future__ import annotations

import msgspec

from petstore.core.clock import Clock
from petstore.core.errors import LimiterUnavailable
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState
from petstore.core.limits.counters import LimiterState, MergingCounterStore
from petstore.core.limits.decision import Decision
from petstore.core.limits.plans import WINDOWS
from petstore.core.limits.quota import ban_decision, decision_for, refusal_for
from petstore.core.limits.windows import AccountWindows
from petstore.core.versions import LEASE_SECONDS, NO_VERSIONS, Version, Versions
from petstore.limiter.valkey.client import ValkeyClient
from petstore.limiter.valkey.connection import Unreachable
from petstore.limiter.valkey.fallback import FallbackLimiter
from petstore.limiter.valkey.inspection import AGREE_MS
from petstore.limiter.valkey.recovery import RecoveryCache, as_text
from petstore.limiter.valkey.scripts import (
    CATALOGUE,
    CATALOGUE_WRITERS,
    EPOCH,
    KEYRING,
    KEYRING_WRITERS,
    TAG,
    Script,
)

# After so many new epochs during one request its data set counts as unreachable.
_EPOCHS_MAX = 3

# Replies of take.lua. _MOVED: the Caller was cached under another version of the keyring.
_MOVED, _NEEDS_RECORDS, _ADMITTED, _REFUSED, _BANNED, _BAN_BEGAN = range(6)

# The version under which a Caller was cached, and until when by the server's clock it may be used.
_Cached = tuple[int, int]
_NOT_CACHED = (0, 0)


class _Lease(msgspec.Struct, eq=False, gc=False):
    """A time in which caches may be used, without an outage: five seconds by this process's clock, and by the
    server's too, which goes on while this machine is suspended."""

    outages: int
    ends_seconds: float
    # By the server's clock: known with the first reply, after which those of earlier calls may come.
    begins_ms: int = 0
    ends_ms: int = 0


class _Token(msgspec.Struct, frozen=True, gc=False):
    """A version that is valid within a lease."""

    number: int
    lease: _Lease


class _Calls:
    """Encodes calls of take.lua, whose constant parts are made once."""

    def __init__(self, script: Script, policy: BanPolicy) -> None:
        numbers = (policy.minimum_rejections, policy.window_ms, policy.grace_ms, policy.forgiven_after_ms)
        rule = " ".join(map(str, (*numbers, *policy.durations_ms))).encode("ascii")
        keys = (CATALOGUE, KEYRING, CATALOGUE_WRITERS, KEYRING_WRITERS, EPOCH)
        self._head = b"$7\r\nEVALSHA\r\n$40\r\n%b\r\n$1\r\n7\r\n" % script.digest
        self._keys = b"".join(b"$%d\r\n%b\r\n" % (len(key), key) for key in keys)
        self._numbers = b" ".join([b"%d"] * (len(WINDOWS) + 3))
        self._rule = b"$%d\r\n%b\r\n" % (len(rule), rule)

    def take(self, caller: Caller, cached: _Cached, more: tuple[bytes, ...] = ()) -> bytes:
        """`more`: the script's ARGV 3 to 6, as far as they are needed."""
        account = TAG + b"windows:%d" % caller.account_id
        key = TAG + b"standing:%d" % caller.key_id
        numbers = self._numbers % (*caller.limits, caller.pardoned_at_ms, *cached)
        return b"*%d\r\n%b$%d\r\n%b\r\n$%d\r\n%b\r\n%b$%d\r\n%b\r\n%b%b" % (
            12 + len(more),
            self._head,
            len(account),
            account,
            len(key),
            key,
            self._keys,
            len(numbers),
            numbers,
            self._rule,
            b"".join([b"$%d\r\n%b\r\n" % (len(part), part) for part in more]),
        )


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
        """Without a `fallback` every request during an outage raises LimiterUnavailable."""
        self._client = client
        self._calls = _Calls(client.scripts.take, policy)
        self._recovery = RecoveryCache(clock, counters)
        self._fallback = fallback
        self._clock = clock
        self._observer = client.observer
        self._lease = _Lease(client.outages, 0.0)
        self._seen: tuple[int, int, _Lease] = (0, 0, self._lease)
        self._versions = NO_VERSIONS
        self._clocks_differ = False

    async def take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        # Before the call is sent: an outage may begin before its reply is read.
        lease, cached = self._lease_of_now(), _NOT_CACHED
        if cached_version is not None:
            if not isinstance(cached_version, _Token) or cached_version.lease is not lease:
                return None
            cached = (cached_version.number, lease.ends_ms)
        if not self._client.is_up:
            return self._decide_locally(caller, cached_version)
        try:
            reply = await self._ask(caller, cached)
        except Unreachable:
            return self._decide_locally(caller, cached_version)
        return self._read(caller, reply, lease)

    def try_take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        return None

    def keyring_version(self) -> Version | None:
        return _Token(self._seen[1], self._lease_of_now()) if self._seen[1] and self._client.is_up else None

    def drain(self) -> LimiterState:
        if self._fallback is not None:
            self._fallback.sweep()
        return self._recovery.drain()

    def saved(self) -> None:
        self._recovery.saved()

    def _lease_of_now(self) -> _Lease:
        lease, seconds, outages = self._lease, self._clock.monotonic(), self._client.outages
        if seconds >= lease.ends_seconds or lease.outages != outages:
            lease = self._lease = _Lease(outages, seconds + LEASE_SECONDS)
        return lease

    async def _ask(self, caller: Caller, cached: _Cached) -> list[int]:
        """The script's reply. Raises Unreachable, and StoreUnavailable where records are restored from it."""
        fallback = self._fallback
        if fallback is not None and fallback.has_pending:
            pending = fallback.take_pending(caller.account_id)
            if pending is not None:
                return await self._ask_with_pending(fallback, caller, cached, pending)
        reply = await self._call(self._calls.take(caller, cached))
        return reply if reply[0] != _NEEDS_RECORDS else await self._ask_with_records(caller, cached, reply[1])

    async def _ask_with_records(
        self, caller: Caller, cached: _Cached, epoch: int, *pending: bytes
    ) -> list[int]:
        """Call with restored records, again when a new epoch has begun meanwhile."""
        for _ in range(_EPOCHS_MAX):
            records = await self._recovery.restore(caller, epoch)
            more = (b"%d" % epoch, *records, *pending)
            reply = await self._call(self._calls.take(caller, cached, more))
            if reply[0] != _NEEDS_RECORDS:
                return reply
            epoch = reply[1]
        raise Unreachable("its data set changes again and again")

    async def _ask_with_pending(
        self, fallback: FallbackLimiter, caller: Caller, cached: _Cached, pending: AccountWindows
    ) -> list[int]:
        """Call with an account's pending counts. They stay pending when the outcome is unknown: a count may
        then be taken twice, and none is lost."""
        counted = False
        text = as_text(pending.numbers())
        try:
            reply = await self._call(self._calls.take(caller, cached, (b"", b"", b"", text)))
            if reply[0] == _NEEDS_RECORDS:
                reply = await self._ask_with_records(caller, cached, reply[1], text)
            counted = reply[0] != _MOVED
        finally:
            if not counted:
                fallback.restore_pending(caller.account_id, pending)
        return reply

    async def _call(self, command: bytes) -> list[int]:
        began = self._clock.monotonic()
        reply: list[int] = await self._client.call(self._client.scripts.take, command)
        self._observer.asked(self._clock.monotonic() - began)
        return reply

    def _read(self, caller: Caller, reply: list[int], lease: _Lease) -> Decision | None:
        kind = reply[0]
        versions = self._current(reply, lease)
        if kind in (_ADMITTED, _REFUSED):
            windows = AccountWindows.of(*reply[4:])
            if kind == _REFUSED:
                return refusal_for(windows, caller, reply[3], versions)
            self._recovery.note_windows(caller.account_id, windows)
            return decision_for(windows, caller, reply[3], versions)
        if kind == _MOVED:
            return None
        from_ms, until_ms, level, pardoned_ms = reply[4:]
        ban = BanState(level=level, banned_from_ms=from_ms, banned_until_ms=until_ms, pardoned_ms=pardoned_ms)
        self._recovery.note_ban(caller.key_id, ban)
        return ban_decision(caller, ban, reply[3], versions, began=kind == _BAN_BEGAN)

    def _current(self, reply: list[int], lease: _Lease) -> Versions:
        """The reply's versions as tokens: the same objects until a version or the lease changes."""
        _, catalogue, keyring, server_ms, *_ = reply
        if not lease.begins_ms <= server_ms < lease.ends_ms:
            lease = self._anchored(lease, server_ms)
        seen = (catalogue, keyring, lease)
        if seen != self._seen:
            self._seen = seen
            self._versions = Versions(
                _Token(catalogue, lease) if catalogue else None, _Token(keyring, lease) if keyring else None
            )
        return self._versions

    def _anchored(self, lease: _Lease, server_ms: int) -> _Lease:
        """The lease, begun with this first reply; a new one if it has ended by the server's clock."""
        self._compare_clocks(server_ms)
        if lease.ends_ms:
            ended, lease = lease, _Lease(lease.outages, lease.ends_seconds)
            if self._lease is ended:
                self._lease = lease
        length_ms = round(LEASE_SECONDS * 1_000)
        lease.begins_ms, lease.ends_ms = server_ms - length_ms, server_ms + length_ms
        return lease

    def _compare_clocks(self, server_ms: int) -> None:
        ahead_ms = server_ms - self._clock.now_ms()
        differ = abs(ahead_ms) > AGREE_MS
        if differ and not self._clocks_differ:
            self._observer.clocks_differ(ahead_ms / 1_000)
        self._clocks_differ = differ

    def _decide_locally(self, caller: Caller, cached_version: Version | None) -> Decision | None:
        if cached_version is not None:
            return None
        self._observer.decided_locally()
        if self._fallback is None:
            raise LimiterUnavailable("The limits can't be counted at the moment; try again soon.")
        return self._fallback.take(caller)
