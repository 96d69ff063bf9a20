"""A ledger in memory that several limiters share: what MergingCounterStore promises, as simply as can be."""

from __future__ import annotations

import copy

from petstore.core.limits.quota import BanState, LimiterState
from petstore.core.limits.usage import AccountWindows, UsageChanges


class MemoryLedger:
    """Implements petstore.core.limits.quota.MergingCounterStore."""

    def __init__(self) -> None:
        self.state = LimiterState()
        self.usage = UsageChanges()
        self.recalls = 0

    async def load(self, now_ms: int) -> LimiterState:
        return copy.deepcopy(self.state)

    async def save(self, state: LimiterState, usage: UsageChanges) -> None:
        await self.merge(state, usage)

    async def merge(self, state: LimiterState, usage: UsageChanges) -> None:
        for account, seen in state.windows.items():
            mine = self.state.windows.setdefault(account, AccountWindows())
            minute = max((mine.minute_opened_ms, mine.minute_used), (seen.minute_opened_ms, seen.minute_used))
            day = max((mine.day, mine.day_used), (seen.day, seen.day_used))
            self.state.windows[account] = AccountWindows(*minute, *day)
        for key, theirs in state.standings.items():
            ours = self.state.standings.get(key)
            order = (theirs.pardoned_ms, theirs.banned_until_ms, theirs.strikes_opened_ms)
            if ours is None or order >= (ours.pardoned_ms, ours.banned_until_ms, ours.strikes_opened_ms):
                self.state.standings[key] = copy.copy(theirs)
        self.usage.add(usage)

    async def recall(
        self, account_id: int, key_id: int, now_ms: int
    ) -> tuple[AccountWindows | None, BanState | None]:
        self.recalls += 1
        windows, standing = self.state.windows.get(account_id), self.state.standings.get(key_id)
        return copy.copy(windows), copy.copy(standing)
