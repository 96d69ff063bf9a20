"""Rate limits as arithmetic: two fixed windows taken together or not at all, and the ladder of bans.

Numbers and a time go in, a Decision comes out. Who keeps the records between two calls is limiter/'s
affair, how a Decision looks in headers is api/replies.py's. Specification: Limits, rules 1 to 5.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from petstore.keys import Grant
from petstore.usage import DAY_MS, MINUTE_MS, AccountWindows, UsageChanges
from petstore.versions import UNKNOWN, Version, Versions

SECOND_MS = 1_000
DAY_SECONDS = 86_400


class Window(msgspec.Struct, frozen=True, gc=False):
    """One window as a client sees it. `reset_at` is the Unix time, in seconds, at which it starts anew."""

    name: str
    limit: int
    seconds: int
    remaining: int
    reset_at: int


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Whether a request may pass, with everything that a client is told about it.

    `binding` is the window that stops the client first: least remaining, on a tie the later reset.
    `retry_after_seconds` is 0 when it may. `banned` tells a ban from a used-up window, `ban_began` the one
    refusal that began it. `versions` are those of a moment after the request arrived: what was kept under
    them is still true.
    """

    allowed: bool
    windows: tuple[Window, ...]
    binding: Window
    now_ms: int
    retry_after_seconds: int = 0
    banned: bool = False
    ban_began: bool = False
    versions: Versions = UNKNOWN


class KeyStanding(msgspec.Struct, gc=False):
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


def _follow_clock(used: AccountWindows, standing: KeyStanding, now_ms: int) -> None:
    """When the clock was set back, move what lies ahead of it: counts stay, and no end is further away
    than a window or a ban is long."""
    if now_ms < used.minute_opened_ms:
        used.minute_opened_ms = now_ms - now_ms % SECOND_MS
    if now_ms < used.day * DAY_MS:
        used.day = now_ms // DAY_MS
    if now_ms < standing.banned_from_ms:
        length_ms = standing.banned_until_ms - standing.banned_from_ms
        standing.banned_from_ms = now_ms
        standing.banned_until_ms = ceil_seconds(now_ms + length_ms) * SECOND_MS


def _roll(used: AccountWindows, now_ms: int) -> None:
    """Open new windows where the old ones are over."""
    if now_ms - used.minute_opened_ms >= MINUTE_MS:
        used.minute_opened_ms = now_ms - now_ms % SECOND_MS
        used.minute_used = 0
    day = now_ms // DAY_MS
    if day > used.day:
        used.day = day
        used.day_used = 0


def _windows(used: AccountWindows, grant: Grant) -> tuple[Window, Window]:
    """Both windows as they stand; a lowered limit leaves nothing, never less."""
    return (
        Window(
            "minute",
            grant.per_minute,
            60,
            grant.per_minute - used.minute_used if used.minute_used < grant.per_minute else 0,
            used.minute_opened_ms // SECOND_MS + 60,
        ),
        Window(
            "day",
            grant.per_day,
            DAY_SECONDS,
            grant.per_day - used.day_used if used.day_used < grant.per_day else 0,
            (used.day + 1) * DAY_SECONDS,
        ),
    )


def _binding(minute: Window, day: Window) -> Window:
    """Least remaining, on a tie the later reset."""
    if minute.remaining != day.remaining:
        return minute if minute.remaining < day.remaining else day
    return minute if minute.reset_at > day.reset_at else day


def banned(
    grant: Grant, standing: KeyStanding, now_ms: int, versions: Versions, *, began: bool = False
) -> Decision:
    """A ban closes both windows until its end."""
    reset_at = standing.banned_until_ms // SECOND_MS
    minute = Window("minute", grant.per_minute, 60, 0, reset_at)
    day = Window("day", grant.per_day, DAY_SECONDS, 0, reset_at)
    retry_after = max(1, ceil_seconds(standing.banned_until_ms - now_ms))
    return Decision(False, (minute, day), minute, now_ms, retry_after, True, began, versions)


def counted(
    used: AccountWindows, grant: Grant, now_ms: int, versions: Versions, *, allowed: bool
) -> Decision:
    """The Decision about a request that is in `used` already, or that found it used up."""
    windows = _windows(used, grant)
    binding = _binding(*windows)
    retry_after = 0 if allowed else max(1, ceil_seconds(binding.reset_at * SECOND_MS - now_ms))
    return Decision(allowed, windows, binding, now_ms, retry_after, False, False, versions)


def _count_refusal(
    standing: KeyStanding, grant: Grant, policy: BanPolicy, reset_at: int, now_ms: int
) -> bool:
    """Count a refusal towards a ban; True when it begins one.

    The first 429 of a window, and those within the grace after it, were in flight: they do not count.
    """
    if standing.refused_reset_at != reset_at:
        standing.refused_reset_at = reset_at
        standing.first_refused_ms = now_ms
        return False
    if now_ms - standing.first_refused_ms <= policy.grace_ms:
        return False
    if not 0 <= now_ms - standing.strikes_opened_ms < policy.window_ms:
        standing.strikes_opened_ms = now_ms
        standing.strikes = 0
    standing.strikes += 1
    if standing.strikes <= max(policy.minimum_rejections, grant.per_minute):
        return False
    if now_ms - standing.banned_until_ms >= policy.forgiven_after_ms:
        standing.level = 0
    duration_ms = policy.durations_ms[min(standing.level, len(policy.durations_ms) - 1)]
    standing.level += 1
    standing.strikes = 0
    standing.strikes_opened_ms = 0
    standing.banned_from_ms = now_ms
    standing.banned_until_ms = ceil_seconds(now_ms + duration_ms) * SECOND_MS
    return True


def _apply_pardon(standing: KeyStanding, grant: Grant) -> None:
    """Forget everything that led to bans before the operator's pardon."""
    standing.refused_reset_at = standing.first_refused_ms = 0
    standing.strikes = standing.strikes_opened_ms = standing.level = 0
    standing.banned_from_ms = standing.banned_until_ms = 0
    standing.pardoned_ms = grant.pardoned_at_ms


def view(used: AccountWindows, grant: Grant, now_ms: int) -> tuple[Window, Window]:
    """Both windows as the account's next request would find them; takes nothing."""
    rolled = AccountWindows(used.minute_opened_ms, used.minute_used, used.day, used.day_used)
    _follow_clock(rolled, KeyStanding(), now_ms)
    _roll(rolled, now_ms)
    return _windows(rolled, grant)


def decide(
    used: AccountWindows,
    standing: KeyStanding,
    grant: Grant,
    policy: BanPolicy,
    now_ms: int,
    versions: Versions = UNKNOWN,
) -> Decision:
    """Take one request from both windows, or from neither, and count a refusal towards a ban.

    Changes the two records; `versions` is only handed on. A refused request consumes nothing; during a ban
    refusals neither extend it nor count. limiter/take.lua says the same in Lua: change both.
    """
    if grant.pardoned_at_ms > standing.pardoned_ms:
        _apply_pardon(standing, grant)
    day_began_ms = used.day * DAY_MS
    if now_ms < used.minute_opened_ms or now_ms < day_began_ms or now_ms < standing.banned_from_ms:
        _follow_clock(used, standing, now_ms)
    if now_ms < standing.banned_until_ms:
        return banned(grant, standing, now_ms, versions)
    if now_ms - used.minute_opened_ms >= MINUTE_MS or now_ms - day_began_ms >= DAY_MS:
        _roll(used, now_ms)
    if used.minute_used < grant.per_minute and used.day_used < grant.per_day:
        used.minute_used += 1
        used.day_used += 1
        windows = _windows(used, grant)
        return Decision(True, windows, _binding(*windows), now_ms, 0, False, False, versions)
    refused = counted(used, grant, now_ms, versions, allowed=False)
    if _count_refusal(standing, grant, policy, refused.binding.reset_at, now_ms):
        return banned(grant, standing, now_ms, versions, began=True)
    return refused


class LimiterState(msgspec.Struct):
    """Windows by account and standings by key: what has to survive a restart, absolute values."""

    windows: dict[int, AccountWindows] = msgspec.field(default_factory=dict)
    standings: dict[int, KeyStanding] = msgspec.field(default_factory=dict)

    def update(self, later: LimiterState) -> None:
        """Take over what changed later."""
        self.windows.update(later.windows)
        self.standings.update(later.standings)


class Limiter(Protocol):
    """Counters shared by everything that serves an account."""

    async def take(self, grant: Grant, kept_under: Version | None = None) -> Decision | None:
        """One request of this key: both windows or neither, and the versions as of after the call began.

        `kept_under` is the keyring's version under which the caller kept this grant. When the keyring has
        another one now, or an unknown one, nothing is taken and None comes back: the caller reads the grant
        afresh and calls again without it. Raises Unavailable where there is no way to decide.
        """
        ...

    def keyring_version(self) -> Version | None:
        """The one to note before a grant is read, and to keep it under once a decision brings the same."""
        ...

    def drain(self) -> LimiterState:
        """What changed since the last call, for the ledger."""
        ...


class Ledger(Protocol):
    """Where counters survive a restart: written in batches, read at the start. May raise StoreUnavailable."""

    async def load(self, now_ms: int) -> LimiterState:
        """Everything that can still matter at `now_ms`."""
        ...

    async def save(self, state: LimiterState, usage: UsageChanges) -> None:
        """Keep absolute values of the state and add the usage, in one transaction."""
        ...


class SharedLedger(Ledger, Protocol):
    """A ledger that several processes write, each what it has seen of counters that they share."""

    async def merge(self, state: LimiterState, usage: UsageChanges) -> None:
        """Keep what is later, and add the usage, in one transaction.

        Of an account's windows the later one stands, of the same one the greater count; of a key's
        standings the one with the later pardon, then the later ban, then the later strikes.
        """
        ...

    async def recall(
        self, account_id: int, key_id: int, now_ms: int
    ) -> tuple[AccountWindows | None, KeyStanding | None]:
        """What was kept of an account and of one of its keys, and can still matter at `now_ms`."""
        ...
