"""Rate limits as arithmetic: all windows taken together or not at all, and the bans of keys.

Records and a time go in, a Decision comes out. limiter/ keeps the records. Specification: Limits.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

from msgspec.structs import replace

from petstore.core.durations import SECOND_MS
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState, apply_pardon, count_refusal, follow_clock_in_ban
from petstore.core.limits.decision import Decision, UsedWindow
from petstore.core.limits.plans import WINDOWS
from petstore.core.limits.windows import AccountWindows, ceil_seconds, flat, follow_clock, roll
from petstore.core.versions import NO_VERSIONS, Versions

_Numbers = tuple[int, ...]
_NONE_LEFT = (0,) * len(WINDOWS)
_one_more: Callable[[_Numbers, None], _Numbers] = flat("a[{0}] + 1")
_left: Callable[[_Numbers, _Numbers], _Numbers] = flat("a[{0}] - b[{0}]")
_more: Callable[[_Numbers, int], _Numbers] = flat("a[{0}] + b")


def _least(remaining: _Numbers, latest_first: _Numbers) -> int:
    """The window with the least left, of equal ones the first. `min` with a key takes three times as long."""
    least_index = latest_first[0]
    for index in latest_first:
        if remaining[index] < remaining[least_index]:
            least_index = index
    return least_index


def ban_decision(
    caller: Caller, ban: BanState, now_ms: int, versions: Versions, *, began: bool = False
) -> Decision:
    """The refusal during a ban: nothing is left in any window until its end."""
    reset_at = ban.banned_until_ms // SECOND_MS
    return Decision(
        allowed=False,
        now_ms=now_ms,
        versions=versions,
        limits=caller.limits,
        remaining=_NONE_LEFT,
        reset_at=(reset_at,) * len(WINDOWS),
        binding_index=0,
        retry_after_seconds=max(1, ceil_seconds(ban.banned_until_ms - now_ms)),
        banned=True,
        ban_began=began,
    )


def decision_for(used: AccountWindows, caller: Caller, now_ms: int, versions: Versions) -> Decision:
    """The Decision for a request that is counted in `used`: allowed unless a window has more than its limit.

    The arguments of Decision are positional: keywords take a sixth longer, for every request.
    """
    openings, limits = used.openings, caller.limits
    remaining = _left(limits, used.used)
    binding_index = _least(remaining, openings.latest_first)
    allowed = remaining[binding_index] >= 0
    return Decision(allowed, now_ms, versions, limits, remaining, openings.reset_at, binding_index)


def decisions_for(
    used: AccountWindows, caller: Caller, now_ms: int, versions: Versions, requests: int
) -> list[Decision]:
    """The Decisions for a number of requests counted in `used`, as if they came one after another."""
    last = decision_for(used, caller, now_ms, versions)
    if requests == 1:
        return [last]
    limits, left, reset_at, binding_index = last.limits, last.remaining, last.reset_at, last.binding_index
    return [
        *(
            Decision(True, now_ms, versions, limits, _more(left, later), reset_at, binding_index)
            for later in range(requests - 1, 0, -1)
        ),
        last,
    ]


def refusal_for(used: AccountWindows, caller: Caller, now_ms: int, versions: Versions) -> Decision:
    """The Decision for a request that found a window used up, and is counted in none.

    When a limit was lowered below the requests used, 0 remain.
    """
    openings = used.openings
    remaining = tuple(max(0, left) for left in _left(caller.limits, used.used))
    binding_index = _least(remaining, openings.latest_first)
    retry_after = max(1, ceil_seconds(openings.reset_at[binding_index] * SECOND_MS - now_ms))
    return Decision(
        False, now_ms, versions, caller.limits, remaining, openings.reset_at, binding_index, retry_after
    )


def free_decision(used: AccountWindows, caller: Caller, now_ms: int, versions: Versions) -> Decision:
    """The Decision for what costs nothing, in windows that are open."""
    refused = refusal_for(used, caller, now_ms, versions)
    return replace(refused, allowed=True, retry_after_seconds=0)


def peek(
    used: AccountWindows, ban: BanState | None, caller: Caller, now_ms: int, versions: Versions
) -> Decision:
    """`free_decision` of these records, of which it changes none. Only a ban refuses it."""
    if ban is not None and caller.pardoned_at_ms <= ban.pardoned_ms:
        if now_ms < ban.banned_from_ms:
            ban = copy.copy(ban)
            follow_clock_in_ban(ban, now_ms)
        if now_ms < ban.banned_until_ms:
            return ban_decision(caller, ban, now_ms, versions)
    return free_decision(_open(used, now_ms), caller, now_ms, versions)


def view(used: AccountWindows, limits: tuple[int, ...], now_ms: int) -> list[UsedWindow]:
    """The windows as the account's next request would find them; takes nothing."""
    opened = _open(used, now_ms)
    return [
        UsedWindow(kind.name, limit, kind.seconds, max(0, limit - count), reset_at, count)
        for kind, limit, count, reset_at in zip(
            WINDOWS, limits, opened.used, opened.openings.reset_at, strict=True
        )
    ]


def _open(used: AccountWindows, now_ms: int) -> AccountWindows:
    """A copy in which all windows are open now."""
    opened = copy.copy(used)
    follow_clock(opened, now_ms)
    roll(opened, now_ms)
    return opened


def decide(
    used: AccountWindows,
    ban: BanState | None,
    caller: Caller,
    policy: BanPolicy,
    now_ms: int,
    versions: Versions = NO_VERSIONS,
) -> Decision:
    """Take one request from all windows, or from none, and count a refusal towards a ban.

    Changes `used` and `ban`; passes `versions` on. `ban` may be None for a key without a refusal so far: the
    first one does not count, and `first_refusal` makes its BanState. A refused request takes nothing; those
    during a ban neither extend it nor count. take.lua is the same in Lua: change both.
    """
    if now_ms < used.openings.since_ms:
        follow_clock(used, now_ms)
    if ban is not None:
        if caller.pardoned_at_ms > ban.pardoned_ms:
            apply_pardon(ban, caller)
        if now_ms < ban.banned_from_ms:
            follow_clock_in_ban(ban, now_ms)
        if now_ms < ban.banned_until_ms:
            return ban_decision(caller, ban, now_ms, versions)
    if now_ms >= used.openings.until_ms:
        roll(used, now_ms)
    before = used.used
    used.used = _one_more(before, None)
    decision = decision_for(used, caller, now_ms, versions)
    if decision.allowed:
        return decision
    used.used = before
    refused = refusal_for(used, caller, now_ms, versions)
    if ban is not None and count_refusal(ban, caller, policy, refused.binding.reset_at, now_ms):
        return ban_decision(caller, ban, now_ms, versions, began=True)
    return refused


def first_refusal(caller: Caller, refused: Decision) -> BanState:
    """The BanState of a key after its first refusal."""
    return BanState(refused.binding.reset_at, refused.now_ms, pardoned_ms=caller.pardoned_at_ms)
