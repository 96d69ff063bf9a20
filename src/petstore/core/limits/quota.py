"""Rate limits as arithmetic: two fixed windows taken together or not at all, and the ladder of bans.

Numbers and a time go in, a Decision comes out. limiter/ keeps the records
between two calls. Specification: Limits, rules 1 to 5.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from petstore.core.keys import Caller
from petstore.core.limits.decision import DAY_SECONDS, Decision, Window
from petstore.core.limits.usage import DAY_MS, MINUTE_MS, AccountWindows, UsageChanges
from petstore.core.versions import NO_VERSIONS, Version, Versions

SECOND_MS = 1_000


class BanState(msgspec.Struct, gc=False):
    """How a key has behaved: its refusals on the way to a ban, its last ban, its step on the ladder.

    `refused_reset_at` names the window whose first 429 was at `first_refused_ms`. `pardoned_ms` is the
    operator's last pardon that was already applied.
    """

    refused_reset_at: int = 0
    first_refused_ms: int = 0
    strikes: int = 0
    strikes_opened_ms: int = 0
    level: int = 0
    banned_from_ms: int = 0
    banned_until_ms: int = 0
    pardoned_ms: int = 0


class BanPolicy(msgspec.Struct, frozen=True):
    """The numbers of the ban rule; durations are one for each step of the ladder."""

    minimum_rejections: int = 60
    window_ms: int = 300_000
    grace_ms: int = 2_000
    durations_ms: tuple[int, ...] = (60_000, 300_000, 900_000, 3_600_000)
    forgiven_after_ms: int = DAY_MS


def ceil_seconds(milliseconds: int) -> int:
    """Milliseconds as whole seconds, rounded up."""
    return -(-milliseconds // SECOND_MS)


def _follow_clock(used: AccountWindows, now_ms: int) -> None:
    """When the clock was set back, move what lies ahead of it: counts stay, and no window's end is further
    away than it is long."""
    if now_ms < used.minute_opened_ms:
        used.minute_opened_ms = now_ms - now_ms % SECOND_MS
    if now_ms < used.day * DAY_MS:
        used.day = now_ms // DAY_MS


def _follow_clock_in_a_ban(ban: BanState, now_ms: int) -> None:
    """The same for a ban that began ahead of the clock."""
    length_ms = ban.banned_until_ms - ban.banned_from_ms
    ban.banned_from_ms = now_ms
    ban.banned_until_ms = ceil_seconds(now_ms + length_ms) * SECOND_MS


def _roll(used: AccountWindows, now_ms: int) -> None:
    """Open new windows where the old ones are over."""
    if now_ms - used.minute_opened_ms >= MINUTE_MS:
        used.minute_opened_ms = now_ms - now_ms % SECOND_MS
        used.minute_used = 0
    day = now_ms // DAY_MS
    if day > used.day:
        used.day = day
        used.day_used = 0


def ban_decision(
    caller: Caller, ban: BanState, now_ms: int, versions: Versions, *, began: bool = False
) -> Decision:
    """A ban closes both windows until its end."""
    reset_at = ban.banned_until_ms // SECOND_MS
    retry_after = max(1, ceil_seconds(ban.banned_until_ms - now_ms))
    return Decision(
        allowed=False,
        now_ms=now_ms,
        versions=versions,
        per_minute=caller.per_minute,
        minute_remaining=0,
        minute_reset_at=reset_at,
        per_day=caller.per_day,
        day_remaining=0,
        day_reset_at=reset_at,
        minute_binds=True,
        retry_after_seconds=retry_after,
        banned=True,
        ban_began=began,
    )


def decision_for(
    used: AccountWindows, caller: Caller, now_ms: int, versions: Versions, allowed: bool
) -> Decision:
    """The Decision about a request that is in `used` already, or that found it used up.

    A limit that was lowered leaves nothing, never less. Every request comes here, and arguments by name would
    make it a sixth slower.
    """
    per_minute, per_day = caller.per_minute, caller.per_day
    left = per_minute - used.minute_used if used.minute_used < per_minute else 0
    day_left = per_day - used.day_used if used.day_used < per_day else 0
    reset_at, day_reset_at = used.minute_opened_ms // SECOND_MS + 60, (used.day + 1) * DAY_SECONDS
    minute_binds = left < day_left or (left == day_left and reset_at > day_reset_at)
    retry_after = 0
    if not allowed:
        until_ms = (reset_at if minute_binds else day_reset_at) * SECOND_MS
        retry_after = max(1, ceil_seconds(until_ms - now_ms))
    return Decision(
        allowed,
        now_ms,
        versions,
        per_minute,
        left,
        reset_at,
        per_day,
        day_left,
        day_reset_at,
        minute_binds,
        retry_after,
    )


def _count_refusal(ban: BanState, caller: Caller, policy: BanPolicy, reset_at: int, now_ms: int) -> bool:
    """Count a refusal towards a ban; True when it begins one.

    The first 429 of a window, and those within the grace after it, were in flight: they do not count.
    """
    if ban.refused_reset_at != reset_at:
        ban.refused_reset_at = reset_at
        ban.first_refused_ms = now_ms
        return False
    if now_ms - ban.first_refused_ms <= policy.grace_ms:
        return False
    if not 0 <= now_ms - ban.strikes_opened_ms < policy.window_ms:
        ban.strikes_opened_ms = now_ms
        ban.strikes = 0
    ban.strikes += 1
    if ban.strikes <= max(policy.minimum_rejections, caller.per_minute):
        return False
    if now_ms - ban.banned_until_ms >= policy.forgiven_after_ms:
        ban.level = 0
    duration_ms = policy.durations_ms[min(ban.level, len(policy.durations_ms) - 1)]
    ban.level += 1
    ban.strikes = 0
    ban.strikes_opened_ms = 0
    ban.banned_from_ms = now_ms
    ban.banned_until_ms = ceil_seconds(now_ms + duration_ms) * SECOND_MS
    return True


def _apply_pardon(ban: BanState, caller: Caller) -> None:
    """Forget everything that led to bans before the operator's pardon."""
    ban.refused_reset_at = ban.first_refused_ms = 0
    ban.strikes = ban.strikes_opened_ms = ban.level = 0
    ban.banned_from_ms = ban.banned_until_ms = 0
    ban.pardoned_ms = caller.pardoned_at_ms


def view(used: AccountWindows, caller: Caller, now_ms: int) -> tuple[Window, Window]:
    """Both windows as the account's next request would find them; takes nothing."""
    rolled = AccountWindows(used.minute_opened_ms, used.minute_used, used.day, used.day_used)
    _follow_clock(rolled, now_ms)
    _roll(rolled, now_ms)
    # As if a request had just been counted: what it found is what the next one finds.
    return decision_for(rolled, caller, now_ms, NO_VERSIONS, allowed=True).windows


def decide(
    used: AccountWindows,
    ban: BanState | None,
    caller: Caller,
    policy: BanPolicy,
    now_ms: int,
    versions: Versions = NO_VERSIONS,
) -> Decision:
    """Take one request from both windows, or from neither, and count a refusal towards a ban.

    Changes the two records; `versions` is only handed on. A key that was never refused anything may do
    without a standing: its first refusal does not count, and `first_refusal` is its ban from then on.
    A refused request consumes nothing; during a ban refusals neither extend it nor count. take.lua says
    the same in Lua: change both.
    """
    age_ms, day_age_ms = now_ms - used.minute_opened_ms, now_ms - used.day * DAY_MS
    if age_ms < 0 or day_age_ms < 0:
        _follow_clock(used, now_ms)
    if ban is not None:
        if caller.pardoned_at_ms > ban.pardoned_ms:
            _apply_pardon(ban, caller)
        if now_ms < ban.banned_from_ms:
            _follow_clock_in_a_ban(ban, now_ms)
        if now_ms < ban.banned_until_ms:
            return ban_decision(caller, ban, now_ms, versions)
    if age_ms >= MINUTE_MS or day_age_ms >= DAY_MS:  # what was moved to the clock is not old
        _roll(used, now_ms)
    if used.minute_used < caller.per_minute and used.day_used < caller.per_day:
        used.minute_used += 1
        used.day_used += 1
        return decision_for(used, caller, now_ms, versions, True)
    refused = decision_for(used, caller, now_ms, versions, False)
    if ban is not None and _count_refusal(ban, caller, policy, refused.binding.reset_at, now_ms):
        return ban_decision(caller, ban, now_ms, versions, began=True)
    return refused


def first_refusal(caller: Caller, refused: Decision) -> BanState:
    """The standing of a key that was just refused for the first time."""
    return BanState(refused.binding.reset_at, refused.now_ms, pardoned_ms=caller.pardoned_at_ms)


class LimiterState(msgspec.Struct):
    """Windows by account and bans by key: what has to survive a restart, absolute values."""

    windows: dict[int, AccountWindows] = msgspec.field(default_factory=dict)
    bans: dict[int, BanState] = msgspec.field(default_factory=dict)

    def update(self, later: LimiterState) -> None:
        """Take over what changed later."""
        self.windows.update(later.windows)
        self.bans.update(later.bans)


class Limiter(Protocol):
    """Counters shared by everything that serves an account."""

    async def take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        """One request of this key: both windows or neither, and the versions as of after the call began.

        `cached_version` is the keyring's version under which this Caller was cached. When the keyring has
        another one now, or an unknown one, nothing is taken and the result is None: read the Caller from the
        store and call again without it. Raises Unavailable where there is no way to decide.
        """
        ...

    def try_take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        """The same where nobody has to wait for it. None says nothing: call `take`."""
        ...

    def keyring_version(self) -> Version | None:
        """Note it before a Caller is read; cache the Caller under it once a decision brings the same."""
        ...

    def drain(self) -> LimiterState:
        """What changed since the last call, for the counter store."""
        ...

    def saved(self) -> None:
        """The counter store has everything that was drained."""
        ...


class CounterStore(Protocol):
    """Where counters survive a restart: written in batches, read at the start. May raise StoreUnavailable."""

    async def load(self, now_ms: int) -> LimiterState:
        """Everything that can still matter at `now_ms`."""
        ...

    async def save(self, state: LimiterState, usage: UsageChanges) -> None:
        """Keep absolute values of the state and add the usage, in one transaction."""
        ...


class MergingCounterStore(CounterStore, Protocol):
    """A counter store that several processes write, each what it has seen of counters that they share."""

    async def merge(self, state: LimiterState, usage: UsageChanges) -> None:
        """Keep what is later, and add the usage, in one transaction.

        Of an account's windows the later one stands, of the same one the greater count; of a key's
        bans the one with the later pardon, then the later ban, then the later strikes.
        """
        ...

    async def load_for(
        self, account_id: int, key_id: int, now_ms: int
    ) -> tuple[AccountWindows | None, BanState | None]:
        """What was kept of an account and of one of its keys, and can still matter at `now_ms`."""
        ...
