"""The ban rule: a key that continues after many 429 answers is refused for a time, longer with each ban.

Reasons: docs/decisions/0007.
"""

from __future__ import annotations

import msgspec

from petstore.core.durations import DAY_MS, SECOND_MS
from petstore.core.keys import Caller
from petstore.core.limits.windows import ceil_seconds


class BanState(msgspec.Struct, gc=False):
    """A key's refusals and its last ban. take.lua has its order of fields; see transactions/rows.py."""

    refused_reset_at: int = 0  # reset, in Unix seconds, of the window whose first 429 was at ...
    first_refused_ms: int = 0  # ... this Unix time
    strikes: int = 0  # refusals that count towards a ban, since ...
    strikes_opened_ms: int = 0  # ... this Unix time, for `BanPolicy.window_ms`
    level: int = 0  # bans in a row: the next one lasts `BanPolicy.durations_ms[level]`, or the last of them
    banned_from_ms: int = 0  # Unix time
    banned_until_ms: int = 0  # Unix time, a whole second: the first moment after the ban; 0 before any
    pardoned_ms: int = 0  # the `Caller.pardoned_at_ms` that was applied last


class BanPolicy(msgspec.Struct, frozen=True):
    """The numbers of the ban rule."""

    strikes_allowed: int = 60  # more strikes than this, and than the account's first limit, begin a ban
    window_ms: int = 300_000  # strikes older than this are forgotten
    grace_ms: int = 2_000  # after a window's first 429, refusals for this time were in flight: no strikes
    durations_ms: tuple[int, ...] = (60_000, 300_000, 900_000, 3_600_000)  # by the number of the ban
    forgiven_after_ms: int = DAY_MS  # then the next ban has the first duration again

    def matter_since_ms(self, now_ms: int) -> int:
        """A BanState with neither a first 429 nor a ban's end after this time says nothing any more.

        The clock may be set back by up to a day.
        """
        return now_ms - self.forgiven_after_ms - DAY_MS


def follow_clock_in_ban(ban: BanState, now_ms: int) -> None:
    """Let a ban that lies ahead of a clock which was set back begin now; it keeps its length."""
    length_ms = ban.banned_until_ms - ban.banned_from_ms
    ban.banned_from_ms = now_ms
    ban.banned_until_ms = ceil_seconds(now_ms + length_ms) * SECOND_MS


def count_refusal(ban: BanState, caller: Caller, policy: BanPolicy, reset_at: int, now_ms: int) -> bool:
    """Count a refusal by the window that resets at `reset_at`; True when it begins a ban."""
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
    if ban.strikes <= max(policy.strikes_allowed, caller.limits[0]):
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


def apply_pardon(ban: BanState, caller: Caller) -> None:
    """Forget all that came before the operator's pardon."""
    ban.refused_reset_at = ban.first_refused_ms = 0
    ban.strikes = ban.strikes_opened_ms = ban.level = 0
    ban.banned_from_ms = ban.banned_until_ms = 0
    ban.pardoned_ms = caller.pardoned_at_ms
