"""Rate limits as arithmetic: two windows taken together or not at all, and the bans of keys.

Records and a time go in, a Decision comes out. limiter/ keeps the records. Specification: Limits.
"""

from __future__ import annotations

from petstore.core.durations import DAY_MS, DAY_SECONDS, MINUTE_MS, SECOND_MS
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState, apply_pardon, count_refusal, follow_clock_in_ban
from petstore.core.limits.decision import Decision, Window
from petstore.core.limits.windows import AccountWindows, ceil_seconds, follow_clock, roll
from petstore.core.versions import NO_VERSIONS, Versions


def ban_decision(
    caller: Caller, ban: BanState, now_ms: int, versions: Versions, *, began: bool = False
) -> Decision:
    """The refusal during a ban: nothing is left in either window until its end."""
    reset_at = ban.banned_until_ms // SECOND_MS
    retry_after = max(1, ceil_seconds(ban.banned_until_ms - now_ms))
    per_minute, per_day = caller.limits
    return Decision(
        allowed=False,
        now_ms=now_ms,
        versions=versions,
        per_minute=per_minute,
        minute_remaining=0,
        minute_reset_at=reset_at,
        per_day=per_day,
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
    """The Decision for a request that is counted in `used` (`allowed`), or that found a window used up.

    When a limit was lowered below the requests used, 0 remain. The arguments of Decision are positional:
    keywords take a sixth longer, for every request.
    """
    per_minute, per_day = caller.limits
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


def view(used: AccountWindows, caller: Caller, now_ms: int) -> tuple[Window, Window]:
    """Both windows as the account's next request would find them; takes nothing."""
    rolled = AccountWindows(used.minute_opened_ms, used.minute_used, used.day, used.day_used)
    follow_clock(rolled, now_ms)
    roll(rolled, now_ms)
    return decision_for(rolled, caller, now_ms, NO_VERSIONS, True).windows


def decide(
    used: AccountWindows,
    ban: BanState | None,
    caller: Caller,
    policy: BanPolicy,
    now_ms: int,
    versions: Versions = NO_VERSIONS,
) -> Decision:
    """Take one request from both windows, or from neither, and count a refusal towards a ban.

    Changes `used` and `ban`; passes `versions` on. `ban` may be None for a key without a refusal so far: the
    first one does not count, and `first_refusal` makes its BanState. A refused request takes nothing; those
    during a ban neither extend it nor count. take.lua is the same in Lua: change both.
    """
    age_ms, day_age_ms = now_ms - used.minute_opened_ms, now_ms - used.day * DAY_MS
    if age_ms < 0 or day_age_ms < 0:
        follow_clock(used, now_ms)
    if ban is not None:
        if caller.pardoned_at_ms > ban.pardoned_ms:
            apply_pardon(ban, caller)
        if now_ms < ban.banned_from_ms:
            follow_clock_in_ban(ban, now_ms)
        if now_ms < ban.banned_until_ms:
            return ban_decision(caller, ban, now_ms, versions)
    if age_ms >= MINUTE_MS or day_age_ms >= DAY_MS:  # windows that followed the clock are not old
        roll(used, now_ms)
    per_minute, per_day = caller.limits
    if used.minute_used < per_minute and used.day_used < per_day:
        used.minute_used += 1
        used.day_used += 1
        return decision_for(used, caller, now_ms, versions, True)
    refused = decision_for(used, caller, now_ms, versions, False)
    if ban is not None and count_refusal(ban, caller, policy, refused.binding.reset_at, now_ms):
        return ban_decision(caller, ban, now_ms, versions, began=True)
    return refused


def first_refusal(caller: Caller, refused: Decision) -> BanState:
    """The BanState of a key after its first refusal."""
    return BanState(refused.binding.reset_at, refused.now_ms, pardoned_ms=caller.pardoned_at_ms)
