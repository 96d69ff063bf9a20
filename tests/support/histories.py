"""Histories for limiters: events as Hypothesis draws them, and a model that says what must come out.

The model is written from the documented rules, in another manner than quota.py, so that every limiter (the
pure arithmetic, memory, Valkey's script) can be compared with it, event by event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from math import ceil

from hypothesis import example
from hypothesis import strategies as st

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.decision import Decision
from tests.support.clock import ManualClock
from tests.support.windows import limits_of

# Small numbers, so that short histories reach every limit, ban and step of the ladder.
POLICY = BanPolicy(
    strikes_allowed=3,
    window_ms=300_000,
    grace_ms=2_000,
    durations_ms=(60_000, 300_000, 900_000),
    forgiven_after_ms=86_400_000,
)
ACCOUNT_OF_KEY = {1: 1, 2: 1, 3: 2}  # the first two keys share an account


@dataclass(frozen=True)
class Take:
    """Requests with one key, at the same moment."""

    key: int
    times: int


@dataclass(frozen=True)
class Move:
    """The clock moves, forward or (negative) back."""

    milliseconds: int


@dataclass(frozen=True)
class SetPlan:
    """An account's limits change."""

    account: int
    per_minute: int
    per_day: int


@dataclass(frozen=True)
class Pardon:
    """The operator lifts a key's ban."""

    key: int


@dataclass(frozen=True)
class Restart:
    """A clean stop and a start."""


Event = Take | Move | SetPlan | Pardon | Restart

_keys = st.sampled_from(sorted(ACCOUNT_OF_KEY))
_takes = st.builds(Take, _keys, st.integers(1, 12))
_waits = st.builds(
    Move,
    st.one_of(
        st.integers(0, 2_500),
        st.integers(55_000, 65_000),
        st.sampled_from((1, 999, 1_000, 2_000, 2_001, 60_000, 300_000, 900_000, 3_600_000, 86_400_000)),
    ),
)
# Together never more than a day, since what is older than yesterday may be forgotten.
_steps_back = st.builds(Move, st.sampled_from((-1, -1_000, -30_000, -61_000)))
_plans = st.builds(SetPlan, st.sampled_from((1, 2)), st.integers(1, 6), st.integers(1, 15))
_others = st.one_of(_plans, st.builds(Pardon, _keys), st.just(Restart()))
_events = st.one_of(_takes, _takes, _takes, _waits, _waits, _steps_back, _others)


@st.composite
def histories(draw: st.DrawFn, size: int = 40) -> list[Event]:
    """Events in an order that a service could meet; at most once the clock goes back by most of a day."""
    events: list[Event] = draw(st.lists(_events, max_size=size))
    if draw(st.booleans()):
        events.insert(draw(st.integers(0, len(events))), Move(-82_800_000))
    return events


# Of a key that has used nothing, on its account's first plan.
_BAN: list[Event] = [Take(1, 4), Move(2_001), Take(1, 4)]

# Past the grace with the day used up: from here on each refusal is a strike.
_DAY_USED: list[Event] = [SetPlan(1, 3, 3), Take(1, 4), Move(2_001)]

# Each reaches one rule's edge: what random events seldom meet.
TELLING: list[list[Event]] = [
    # the day is used up before the minute; a refusal takes nothing from the other window
    [SetPlan(1, 6, 3), Take(1, 5)],
    [Take(1, 6), Move(60_000), Take(1, 1)],
    # keys of an account share its windows, another account has its own
    [Take(1, 2), Take(2, 2), Take(1, 1), Take(3, 1)],
    # a minute is over at its 60th second, and opens at the whole second of its first request
    [Take(1, 4), Move(59_999), Take(1, 1), Move(1), Take(1, 4)],
    [Move(999), Take(1, 1), Move(59_000), Take(1, 1), Move(61), Take(1, 1)],
    # a plan change counts what is used: lowered, nothing is left until the reset; raised, the rest is
    [Take(1, 3), SetPlan(1, 1, 9), Move(30_000), Take(1, 1), Move(30_000), Take(1, 1)],
    [Take(1, 3), SetPlan(1, 3, 2), Take(1, 1)],
    [Take(1, 4), SetPlan(1, 6, 15), Move(1_000), Take(1, 1)],
    # a clock that was set back: within the window, out of it, by most of a day, and after a step forward
    [Take(1, 1), Move(30_000), Take(1, 1), Move(-29_500), Take(1, 1)],
    [Take(1, 1), Move(-1), Take(1, 1), Move(-59_000), Take(1, 2), Move(60_000), Take(1, 1)],
    [Take(1, 4), Move(-82_800_000), Take(1, 1), Move(60_000), Take(1, 1)],
    [Take(1, 2), Move(3_600_000), Take(1, 1), Move(-3_590_000), Take(1, 2)],
    [Take(1, 2), Move(86_400_000), Take(1, 1), Move(-82_800_000), Take(1, 1)],
    # set back over midnight, within a minute window
    [Move(57_560_000), Take(1, 1), Move(20_000), Take(1, 1), Move(-15_000), Take(1, 1)],
    # more refusals than the plan's limit, where that is above the least number
    [SetPlan(1, 5, 15), Take(1, 6), Move(2_001), Take(1, 5), Take(1, 2)],
    # the grace's last millisecond still counts as in flight; each window has a grace of its own
    [Take(1, 4), Move(2_000), Take(1, 4), Move(1), Take(1, 4)],
    [SetPlan(1, 3, 9), Take(1, 4), Move(2_001), Take(1, 2), Move(58_000), Take(1, 4), Move(999), Take(1, 5)],
    # with both windows used up the later reset binds: the next minute's refusals are of the same window
    [SetPlan(1, 3, 3), Take(1, 4), Move(60_000), Take(1, 4)],
    # strikes are counted in a window of their own, which ends, and which a clock that was set back ends too
    [*_DAY_USED, Take(1, 3), Move(299_999), Take(1, 1)],
    [*_DAY_USED, Take(1, 3), Move(300_000), Take(1, 4)],
    [SetPlan(1, 3, 3), Take(1, 4), Move(5_000), Take(1, 3), Move(-1_000), Take(1, 4)],
    # after a ban they are counted in a new window
    [*_DAY_USED, Take(1, 4), Move(61_000), Take(1, 3), Move(240_000), Take(1, 1)],
    # requests during a ban open no window, take nothing, and neither extend it nor count
    [*_BAN, Move(59_000), Take(1, 12), Move(2_000), Take(1, 1)],
    [*_BAN, Move(1_000), Take(1, 12), Move(60_000), Take(1, 4), Move(2_001), Take(1, 3)],
    # a clock that was set back behind a ban's beginning
    [*_BAN, Move(-30_500), Take(1, 2), Move(31_500), Take(1, 1)],
    [*_BAN, Move(-82_800_000), Take(1, 1), Move(59_000), Take(1, 1), Move(1_000), Take(1, 1)],
    # a pardon is of one key, is applied once, and clears strikes and the ladder
    [*_BAN, Pardon(1), Take(1, 4), Take(2, 1)],
    [Pardon(1), *_BAN, Move(1_000), Take(1, 1)],
    [Take(1, 4), Move(2_001), Take(1, 3), Pardon(1), Take(1, 1), Move(2_001), Take(1, 4)],
    [*_BAN, Move(61_000), *_BAN, Pardon(1), Take(1, 1), Move(61_000), *_BAN],
    # strikes after a pardon are counted in a new window
    [*_DAY_USED, Take(1, 3), Pardon(1), Take(1, 1), Move(2_001), Take(1, 3), Move(299_000), Take(1, 1)],
    # the ladder, its last step twice
    [*_BAN, Move(61_000), *_BAN, Move(301_000), *_BAN, Move(901_000), *_BAN, Move(901_000), Take(1, 1)],
    # forgiven exactly a day after the last ban's end, and not a millisecond before
    [*_BAN, Move(86_458_997), *_BAN],
    [*_BAN, Move(86_458_998), *_BAN],
    # windows and bans survive a restart; two days later everything is there again
    [Take(1, 4), Restart(), Take(1, 1), Move(2_001), Take(1, 4), Restart(), Move(10_000), Take(1, 1)],
    [Take(1, 3), Restart(), Move(172_800_000), Restart(), Take(1, 1)],
]


def telling(test: Callable[..., None]) -> Callable[..., None]:
    """Add these histories to a test of `events` by Hypothesis."""
    for history in TELLING:
        test = example(events=history)(test)
    return test


@dataclass
class _Account:
    per_minute: int = 3
    per_day: int = 10
    minute_began: int | None = None  # in whole seconds
    in_minute: int = 0
    day: int | None = None
    in_day: int = 0


@dataclass
class _Key:
    pardoned_at: int = 0
    told_reset: int | None = None
    first_told: int = 0
    counted: list[int] = field(default_factory=list)
    level: int = 0
    ban_began: int = 0
    ban_ends: int = 0  # a whole second, in milliseconds


class Model:
    """What the documented rules say; one instance is the whole world, restarts do not touch it."""

    def __init__(self, policy: BanPolicy) -> None:
        self.policy = policy
        self.accounts = {account: _Account() for account in set(ACCOUNT_OF_KEY.values())}
        self.keys = {key: _Key() for key in ACCOUNT_OF_KEY}

    def caller(self, key: int) -> Caller:
        """The caller that the store would hold for a key."""
        account = self.accounts[ACCOUNT_OF_KEY[key]]
        return Caller(
            key_id=key,
            account_id=ACCOUNT_OF_KEY[key],
            limits=limits_of(account.per_minute, account.per_day),
            pardoned_at_ms=self.keys[key].pardoned_at,
        )

    def pardon(self, key: int, now: int) -> None:
        """Nothing that happened before is held against the key."""
        self.keys[key] = _Key(pardoned_at=max(now, self.keys[key].pardoned_at + 1))

    def take(self, key: int, now: int) -> dict[str, object]:
        """What one request is told."""
        record, account = self.keys[key], self.accounts[ACCOUNT_OF_KEY[key]]
        if now < record.ban_ends:
            if now < record.ban_began:  # the clock went back behind the ban's beginning
                length = record.ban_ends - record.ban_began
                record.ban_began, record.ban_ends = now, ceil((now + length) / 1000) * 1000
            return self._answer_of_ban(record, account, now, began=False)
        self._open_windows(account, now)
        allowed = account.in_minute < account.per_minute and account.in_day < account.per_day
        if allowed:
            account.in_minute += 1
            account.in_day += 1
        assert account.minute_began is not None
        assert account.day is not None
        minute = (max(account.per_minute - account.in_minute, 0), account.minute_began + 60)
        day = (max(account.per_day - account.in_day, 0), (account.day + 1) * 86_400)
        reset = min((minute, day), key=lambda window: (window[0], -window[1]))[1]
        if not allowed and self._leads_to_ban(record, account, reset, now):
            return self._answer_of_ban(record, account, now, began=True)
        retry_after = 0 if allowed else max(1, ceil((reset * 1000 - now) / 1000))
        return _answer(allowed, minute, day, retry_after, reset)

    def _open_windows(self, account: _Account, now: int) -> None:
        second, day = now // 1000, now // 86_400_000
        if account.minute_began is None or second >= account.minute_began + 60:
            account.minute_began, account.in_minute = second, 0
        elif now < account.minute_began * 1000:  # set back: the count stays, the window is anchored anew
            account.minute_began = second
        if account.day is None or day > account.day:
            account.day, account.in_day = day, 0
        account.day = day

    def _leads_to_ban(self, record: _Key, account: _Account, reset: int, now: int) -> bool:
        if record.told_reset != reset:  # the first 429 of this window
            record.told_reset, record.first_told = reset, now
            return False
        if now <= record.first_told + self.policy.grace_ms:
            return False
        counted = record.counted
        if counted and not counted[0] <= now < counted[0] + self.policy.window_ms:
            counted.clear()
        counted.append(min(counted[0], now) if counted else now)
        if len(counted) <= max(self.policy.strikes_allowed, account.per_minute):
            return False
        if now >= record.ban_ends + self.policy.forgiven_after_ms:
            record.level = 0
        lengths = self.policy.durations_ms
        length = lengths[record.level] if record.level < len(lengths) else lengths[-1]
        record.level += 1
        counted.clear()
        record.ban_began, record.ban_ends = now, ceil((now + length) / 1000) * 1000
        return True

    def _answer_of_ban(self, record: _Key, account: _Account, now: int, *, began: bool) -> dict[str, object]:
        reset = record.ban_ends // 1000
        answer = _answer(False, (0, reset), (0, reset), max(1, ceil((record.ban_ends - now) / 1000)), reset)
        return answer | {"banned": True, "ban_began": began}


def _answer(
    allowed: bool, minute: tuple[int, int], day: tuple[int, int], retry_after: int, reset: int
) -> dict[str, object]:
    return {
        "allowed": allowed,
        "minute": minute,
        "day": day,
        "retry_after": retry_after,
        "reset": reset,
        "banned": False,
        "ban_began": False,
    }


def as_answer(decision: Decision) -> dict[str, object]:
    """A Decision in the model's words."""
    minute, *_, day = decision.windows
    assert (minute.name, minute.seconds, day.name, day.seconds) == ("minute", 60, "day", 86_400)
    return {
        "allowed": decision.allowed,
        "minute": (minute.remaining, minute.reset_at),
        "day": (day.remaining, day.reset_at),
        "retry_after": decision.retry_after_seconds,
        "reset": decision.binding.reset_at,
        "banned": decision.banned,
        "ban_began": decision.ban_began,
    }


async def compare(
    events: list[Event],
    clock: ManualClock,
    take: Callable[[Caller], Awaitable[Decision]],
    restart: Callable[[], Awaitable[None]],
) -> None:
    """Let a limiter and the model go through the same events; they must say the same each time."""
    model = Model(POLICY)
    for event in events:
        match event:
            case Take(key, times):
                for _ in range(times):
                    expected = model.take(key, clock.now_ms())
                    assert as_answer(await take(model.caller(key))) == expected
            case Move(milliseconds):
                clock.ms += milliseconds
            case SetPlan(account, per_minute, per_day):
                model.accounts[account].per_minute = per_minute
                model.accounts[account].per_day = per_day
            case Pardon(key):
                model.pardon(key, clock.now_ms())
            case Restart():
                await restart()
