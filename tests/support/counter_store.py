"""Counters in memory that several limiters share: what MergingCounterStore promises, as simply as can be."""

from __future__ import annotations

import copy

from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.usage import UsageChanges
from petstore.core.limits.windows import AccountWindows, later_windows


class MemoryCounterStore:
    """Implements counters.MergingCounterStore."""

    def __init__(self) -> None:
        self.state = LimiterState()
        self.usage = UsageChanges()
        self.loads = 0

    async def load(self, now_ms: int, bans_since_ms: int = -1) -> LimiterState:
        return copy.deepcopy(self.state)

    async def save(self, state: LimiterState, usage: UsageChanges) -> None:
        await self.merge(state, usage)

    async def merge(self, state: LimiterState, usage: UsageChanges) -> None:
        for account, seen in state.windows.items():
            mine = self.state.windows.setdefault(account, AccountWindows())
            self.state.windows[account] = later_windows(mine, seen)
        for key, theirs in state.bans.items():
            ours = self.state.bans.get(key)
            order = (theirs.pardoned_ms, theirs.banned_until_ms, theirs.strikes_opened_ms)
            if ours is None or order >= (ours.pardoned_ms, ours.banned_until_ms, ours.strikes_opened_ms):
                self.state.bans[key] = copy.copy(theirs)
        self.usage.add(usage)

    async def load_for(
        self, now_ms: int, account_id: int, key_id: int
    ) -> tuple[AccountWindows | None, BanState | None]:
        self.loads += 1
        windows, ban = self.state.windows.get(account_id), self.state.bans.get(key_id)
        return copy.deepcopy(windows), copy.copy(ban)
