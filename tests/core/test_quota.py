"""The arithmetic of the two windows, with the sum beside each row; test_quota_model.py has any history."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from petstore.core.durations import DAY_MS
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.decision import Decision, Window
from petstore.core.limits.plans import WINDOWS
from petstore.core.limits.quota import decide, view
from petstore.core.limits.windows import AccountWindows, ceil_seconds, later_windows
from petstore.limiter.address_limiter import AddressBucket, decide_address
from tests.support.cases import every_case
from tests.support.windows import limits_of, used_of

# 2027-01-15 08:00:30 UTC, half way through a minute of the wall clock: windows do not follow it.
NOON = 1_800_000_030_000
DAY_RESET = (NOON // DAY_MS + 1) * 86_400


class Key:
    """One key with its records, and a clock that each call moves to a moment after NOON."""

    def __init__(self, per_minute: int = 60, per_day: int = 1_000, policy: BanPolicy | None = None) -> None:
        self.caller = Caller(key_id=1, account_id=1, limits=limits_of(per_minute, per_day))
        self.used = AccountWindows()
        self.ban = BanState()
        self.policy = policy or BanPolicy()

    def take(self, seconds: float = 0, times: int = 1) -> Decision:
        """The last of some requests at `seconds` after NOON."""
        now_ms = NOON + round(seconds * 1_000)
        for _ in range(times):
            decision = decide(self.used, self.ban, self.caller, self.policy, now_ms)
        return decision


def offsets(decision: Decision) -> tuple[int, int]:
    """When each window resets, in seconds after NOON."""
    minute, *_, day = decision.windows
    return minute.reset_at - NOON // 1_000, day.reset_at - NOON // 1_000


class TestTables:
    """Rows that a person can check."""

    @every_case(
        ("at", "left", "reset"),
        [
            # (moments of the requests, minute's remaining after the last, its reset after NOON)
            ((0,), 59, 60),  # 60 - 1; 0 + 60
            ((0, 0, 0), 57, 60),  # 60 - 3
            ((0, 30), 58, 60),  # 60 - 2; the reset does not move
            ((0, 59.999), 58, 60),  # still the same window
            ((0, 60), 59, 120),  # the window is over at its reset exactly; 60 + 60
            ((0, 300), 59, 360),  # a pause; 300 + 60
            ((0.999,), 59, 60),  # opens at the whole second in which the first request falls
            ((0.999, 59.999), 58, 60),
            ((0.999, 60), 59, 120),
            ((0, 61.5), 59, 121),  # opens at 61
        ],
    )
    def test_the_minute_window_opens_with_the_first_request_and_lasts_60_s(
        self, at: tuple[float, ...], left: int, reset: int
    ) -> None:
        """Limits, rule: the minute window is the account's own, not the wall clock's."""
        key = Key()
        decision = [key.take(moment) for moment in at][-1]
        assert (decision.allowed, decision.windows[0].remaining) == (True, left)
        assert offsets(decision)[0] == reset

    def test_the_day_is_the_utc_calendar_day(self) -> None:
        """The last millisecond of a day and the first of the next are two windows."""
        key = Key()
        last = DAY_RESET - NOON / 1_000
        assert key.take(last - 0.001).windows[-1] == Window("day", 1_000, 86_400, 999, DAY_RESET)
        assert key.take(last).windows[-1] == Window("day", 1_000, 86_400, 999, DAY_RESET + 86_400)

    @every_case(
        ("per_minute", "per_day", "taken", "binding"),
        [
            # (limits, requests before the look, name of the window that binds)
            (60, 1_000, 1, "minute"),  # 59 < 999
            (60, 1_000, 60, "minute"),  # 0 < 940
            (60, 30, 1, "day"),  # 29 < 59
            (60, 30, 30, "day"),  # 0 < 30
            (60, 60, 1, "day"),  # 59 = 59: the later reset
            (60, 60, 60, "day"),  # 0 = 0: the later reset
        ],
    )
    def test_the_binding_window_has_the_least_remaining_and_on_a_tie_the_later_reset(
        self, per_minute: int, per_day: int, taken: int, binding: str
    ) -> None:
        """It is what X-RateLimit-* report."""
        assert Key(per_minute, per_day).take(times=taken).binding.name == binding

    def test_on_a_tie_shortly_before_midnight_the_minute_is_the_later_one(self) -> None:
        """Both are used up 10 s before midnight: waiting for the day alone would not help."""
        key = Key(5, 5)
        refused = key.take(DAY_RESET - NOON / 1_000 - 10, times=6)
        assert not refused.allowed
        assert (refused.binding.name, refused.retry_after_seconds) == ("minute", 60)

    @every_case(
        ("at", "retry_after"),
        [
            # the window resets at 60: (moment of the refusal, ceil(60 - moment))
            (0, 60),
            (0.001, 60),  # ceil(59.999)
            (1, 59),
            (58.5, 2),  # ceil(1.5)
            (59, 1),
            (59.001, 1),  # ceil(0.999)
            (59.999, 1),  # ceil(0.001): never 0
        ],
    )
    def test_retry_after_is_the_seconds_to_the_reset_rounded_up(self, at: float, retry_after: int) -> None:
        """Retry-After = max(1, ceil(reset - now)), and a retry at that second succeeds."""
        key = Key()
        key.take(times=60)
        refused = key.take(at)
        assert (refused.allowed, refused.retry_after_seconds) == (False, retry_after)
        assert (refused.binding.remaining, refused.banned) == (0, False)
        assert key.take(at + retry_after).allowed

    @every_case(("milliseconds", "seconds"), [(0, 0), (1, 1), (999, 1), (1_000, 1), (1_001, 2)])
    def test_seconds_are_rounded_up_from_milliseconds(self, milliseconds: int, seconds: int) -> None:
        """One below 0 is 0 s away."""
        assert ceil_seconds(milliseconds) == seconds
        assert ceil_seconds(-1) == 0


@given(
    before=st.lists(st.integers(0, 100_000), max_size=12),
    then=st.integers(-100_000, 200_000),
    per_minute=st.integers(1, 5),
    per_day=st.integers(1, 8),
)
@settings(max_examples=75, deadline=None)
def test_it_shows_what_the_next_request_finds(
    before: list[int], then: int, per_minute: int, per_day: int
) -> None:
    """The next Decision has the same resets, and one less in each window when it passes."""
    key = Key(per_minute, per_day, BanPolicy(strikes_allowed=10**6))
    moment = 0.0
    for gap in before:
        moment += gap / 1_000
        key.take(moment)
    moment += then / 1_000
    kept = copy.copy(key.used)
    seen = view(key.used, key.caller.limits, NOON + round(moment * 1_000))
    assert key.used == kept
    decision = key.take(moment)
    assert [w.remaining - decision.allowed for w in seen] == [w.remaining for w in decision.windows]
    assert [w.reset_at for w in seen] == [w.reset_at for w in decision.windows]
    assert [w.seconds for w in seen] == [w.seconds for w in WINDOWS]


class TestAddressBucket:
    """Failed authentications of one address: a fixed window of 60 s. tests/api counts them."""

    def test_the_window_opens_with_the_second_of_its_first_failure(self) -> None:
        """The window of a failure at .400 began 400 ms before; its last refusal says 1 s, a pass no wait."""
        bucket = AddressBucket()
        first = decide_address(bucket, 1, NOON + 400, charge=True)
        assert (bucket.opened_ms, first.now_ms, first.retry_after_seconds) == (NOON, NOON + 400, 0)
        assert decide_address(bucket, 1, NOON + 59_999, charge=True).retry_after_seconds == 1

    def test_a_clock_set_back_keeps_the_count(self) -> None:
        """The window is anchored anew, so that nobody waits longer than a minute."""
        bucket = AddressBucket()
        decide_address(bucket, 2, NOON, charge=True)
        decide_address(bucket, 2, NOON - DAY_MS, charge=True)
        refused = decide_address(bucket, 2, NOON - DAY_MS, charge=True)
        assert (refused.allowed, refused.retry_after_seconds) == (False, 60)


def test_a_state_takes_over_what_changed_later() -> None:
    """Absolute values: the later one replaces the earlier one, others stay."""
    first, later = used_of((1, 1), (1, 1)), used_of((2, 2), (2, 2))
    state = LimiterState({1: first, 2: first}, {1: BanState(strikes=1)})
    state.update(LimiterState({2: later}, {3: BanState(strikes=3)}))
    assert state.windows == {1: first, 2: later}
    assert {key: ban.strikes for key, ban in state.bans.items()} == {1: 1, 3: 3}


def test_the_stored_numbers_are_the_windows() -> None:
    """The form of stores and Valkey: of each window its opening in its own unit, and its count."""
    numbers = tuple(range(1, 2 * len(WINDOWS) + 1))
    assert AccountWindows.of(*numbers).numbers() == numbers
    assert AccountWindows.of(*numbers).used == numbers[1::2]
    assert {type(number) for number in AccountWindows.of(*numbers).numbers()} == {int}


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ((5, 2, 9, 7), (6, 1, 9, 3), (6, 1, 9, 7)),
        ((5, 2, 9, 7), (5, 3, 8, 8), (5, 3, 9, 7)),
    ],
)
def test_of_two_records_each_window_is_the_later_one(
    one: tuple[int, ...], other: tuple[int, ...], both: tuple[int, ...]
) -> None:
    """Each window by itself; of the same window the greater count."""
    for pair in ((one, other), (other, one)):
        assert later_windows(*(AccountWindows.of(*numbers) for numbers in pair)).numbers() == both
