"""The limiter of a single process: records in two dictionaries, decided by quota.py.

Without locks: every call is made on the event loop, and nothing is awaited between reading a record and
writing it. ops/flusher.py saves the records in the store, which also has the versions.
"""

from __future__ import annotations

import copy

from petstore.core.clock import Clock
from petstore.core.durations import DAY_MS, SECOND_MS
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import LimiterState, OnDecision
from petstore.core.limits.decision import Decision
from petstore.core.limits.quota import decide, first_refusal, peek
from petstore.core.limits.windows import AccountWindows
from petstore.core.versions import Version, Versions, VersionSource


class MemoryLimiter:
    """Implements counters.Limiter for everything that one process serves."""

    def __init__(
        self, clock: Clock, policy: BanPolicy, versions: VersionSource, state: LimiterState | None = None
    ) -> None:
        self._now_ms = clock.now_ms
        self._policy = policy
        self._versions = versions
        self._windows = state.windows if state else {}
        self._bans = state.bans if state else {}
        self._changed_accounts: set[int] = set()
        self._changed_keys: set[int] = set()
        self._swept_day = clock.now_ms() // DAY_MS

    async def take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        versions = self._versions.try_current() or await self._versions.current()
        return self.take_at(caller, cached_version, versions, self._now_ms())

    def try_take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        versions = self._versions.try_current()
        return None if versions is None else self.take_at(caller, cached_version, versions, self._now_ms())

    async def peek(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        versions = self._versions.try_current() or await self._versions.current()
        if cached_version is not None and versions.keyring != cached_version:
            return None
        return self.peek_at(caller, versions, self._now_ms())

    def peek_at(self, caller: Caller, versions: Versions, now_ms: int) -> Decision:
        """`peek` with the versions and the time of this moment."""
        used = self._windows.get(caller.account_id) or AccountWindows()
        return peek(used, self._bans.get(caller.key_id), caller, now_ms, versions)

    def take_later(self, caller: Caller, cached_version: Version | None, callback: OnDecision) -> bool:
        return False

    def take_at(
        self, caller: Caller, cached_version: Version | None, versions: Versions, now_ms: int
    ) -> Decision | None:
        """`take` with the versions and the time of this moment."""
        if cached_version is not None and versions.keyring != cached_version:
            return None
        used = self._windows.get(caller.account_id)
        if used is None:
            used = self._windows[caller.account_id] = AccountWindows()
        ban = self._bans.get(caller.key_id)
        decision = decide(used, ban, caller, self._policy, now_ms, versions)
        if decision.allowed:
            self._changed_accounts.add(caller.account_id)
        else:
            if ban is None:
                self._bans[caller.key_id] = first_refusal(caller, decision)
            self._changed_keys.add(caller.key_id)
        return decision

    def keyring_version(self) -> Version | None:
        return self._versions.known().keyring

    def drain(self) -> LimiterState:
        changed = LimiterState(
            {account: copy.copy(self._windows[account]) for account in self._changed_accounts},
            {key: copy.copy(self._bans[key]) for key in self._changed_keys},
        )
        self._changed_accounts.clear()
        self._changed_keys.clear()
        self._sweep(self._now_ms())
        return changed

    def saved(self) -> None:
        """Nothing to do: memory has all records anyway."""

    def _sweep(self, now_ms: int) -> None:
        """Remove, once a day, records that no longer matter, so that memory follows the active accounts."""
        day = now_ms // DAY_MS
        if day == self._swept_day:
            return
        self._swept_day = day
        for account, used in list(self._windows.items()):
            if now_ms // SECOND_MS >= max(used.openings.reset_at):
                del self._windows[account]
        since_ms = self._policy.matter_since_ms(now_ms)
        for key, ban in list(self._bans.items()):
            if max(ban.first_refused_ms, ban.banned_until_ms) <= since_ms:
                del self._bans[key]
