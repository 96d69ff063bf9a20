"""The rule of bans: when one begins, how long it lasts, how it is forgiven, and whom it can never hit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from petstore.core.durations import DAY_MS
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState
from petstore.core.limits.decision import Decision, Window
from petstore.core.limits.quota import decide
from petstore.core.limits.windows import AccountWindows

START = 1_800_000_030_000
POLICY = BanPolicy()


class Client:
    """A key that knocks at moments given in seconds after START."""

    def __init__(self, per_minute: int = 60, policy: BanPolicy = POLICY) -> None:
        self.caller = Caller(key_id=1, account_id=1, per_minute=per_minute, per_day=10**9)
        self.used = AccountWindows()
        self.ban = BanState()
        self.policy = policy

    def knock(self, at: float, times: int = 1) -> Decision:
        """The last of some requests at a moment."""
        for _ in range(times):
            decision = decide(self.used, self.ban, self.caller, self.policy, START + round(at * 1_000))
        return decision

    def earn_a_ban(self, at: float) -> Decision:
        """Use up a fresh minute window, then go on until the ban begins: 3 s after `at`."""
        self.knock(at, self.caller.per_minute + 1)  # the window, and its first 429
        counted = max(self.policy.minimum_rejections, self.caller.per_minute) + 1
        decision = self.knock(at + 3, counted)
        assert decision.ban_began
        return decision

    def pardon(self, at: float) -> None:
        self.caller = Caller(
            key_id=1,
            account_id=1,
            per_minute=self.caller.per_minute,
            per_day=10**9,
            pardoned_at_ms=START + round(at * 1_000),
        )


class TestBeginning:
    """More than max(60, the plan's limit) counted rejections within 5 minutes."""

    @pytest.mark.parametrize(
        ("per_minute", "rejections"),
        [
            (1, 60),  # max(60, 1)
            (60, 60),  # max(60, 60)
            (61, 61),  # max(60, 61)
            (300, 300),  # max(60, 300)
        ],
    )
    def test_the_rejection_past_the_bound_begins_it(self, per_minute: int, rejections: int) -> None:
        """Exactly the bound is still no ban; one more is."""
        client = Client(per_minute)
        client.knock(0, per_minute + 1)
        last = client.knock(3, rejections)
        assert (last.allowed, last.banned) == (False, False)
        began = client.knock(3)
        assert (began.banned, began.ban_began) == (True, True)
        assert not client.knock(3).ban_began

    def test_the_first_rejection_and_those_within_the_grace_do_not_count(self) -> None:
        """A thousand requests that were in flight, up to 2 s after the first 429: no ban."""
        client = Client()
        client.knock(0, 60)
        assert not client.knock(1, 1_000).banned
        assert not client.knock(3, 1_000).banned  # 3 = 1 + 2: still within the grace
        assert client.ban.strikes == 0
        assert not client.knock(3.001, 60).banned
        assert client.knock(3.001).ban_began

    def test_each_window_has_a_grace_of_its_own(self) -> None:
        """The next minute's first 429 and its burst do not count either."""
        client = Client()
        client.knock(0, 61)
        client.knock(10, 30)
        client.knock(60, 61)
        assert not client.knock(61, 500).banned
        assert client.ban.strikes == 30

    def test_rejections_of_several_windows_within_5_minutes_add_up(self) -> None:
        """Four windows of 15 counted rejections are 60; the 61st, in the fifth, begins the ban."""
        client = Client()
        for window in range(4):
            client.knock(60 * window, 61)
            assert not client.knock(60 * window + 3, 15).banned
        client.knock(240, 61)
        assert client.knock(243).ban_began

    def test_after_5_minutes_counting_starts_anew(self) -> None:
        """The window opens with the first counted rejection, at 3 s; at 303 s it is over."""
        client = Client()
        client.knock(0, 61)
        client.knock(3, 60)
        client.knock(298, 61)
        assert client.ban.strikes == 60
        assert not client.knock(303, 60).banned
        assert client.knock(303).ban_began


class TestLength:
    """The ladder: 1, 5, 15, 60 minutes, and 60 again."""

    def test_each_ban_is_a_step_longer_and_the_last_step_repeats(self) -> None:
        """I15: each begins 3 s after a fresh window is opened; none is skipped."""
        client = Client()
        at = 0
        for minutes in (1, 5, 15, 60, 60):
            began = client.earn_a_ban(at)
            assert began.retry_after_seconds == minutes * 60
            at += 3 + minutes * 60
            assert client.knock(at - 0.001).banned
            assert client.knock(at).allowed
            at += 60

    def test_during_a_ban_both_windows_are_closed_until_its_end(self) -> None:
        """Remaining 0 in both, reset and Retry-After at the ban's end."""
        client = Client()
        client.earn_a_ban(0)
        end = START // 1_000 + 63
        during = client.knock(30.5)
        assert during.windows == (
            Window("minute", 60, 60, 0, end),
            Window("day", 10**9, 86_400, 0, end),
        )
        assert (during.banned, during.retry_after_seconds) == (True, 33)  # ceil(63 - 30.5)

    def test_requests_during_a_ban_neither_extend_it_nor_count(self) -> None:
        """Ten thousand of them: it ends when it was going to, with no strike on the record."""
        client = Client()
        client.earn_a_ban(0)
        client.knock(62.999, 10_000)
        assert client.ban.strikes == 0
        assert client.knock(63).allowed

    def test_requests_during_a_ban_take_nothing(self) -> None:
        """The account's windows are as they were."""
        client = Client()
        client.earn_a_ban(0)
        used = (client.used.minute_used, client.used.day_used)
        client.knock(20, 100)
        assert (client.used.minute_used, client.used.day_used) == used

    def test_an_end_between_two_seconds_is_rounded_up(self) -> None:
        """So that the reset, a whole second, is literally its end: 3.5 + 60, rounded up, is 64."""
        client = Client()
        client.knock(0, 61)
        assert client.knock(3.5, 61).retry_after_seconds == 61  # ceil(64 - 3.5)
        assert client.knock(63.999).banned
        assert client.knock(64).allowed

    def test_a_clock_set_back_moves_the_ban_along(self) -> None:
        """A day back: the ban lasts its minute from there, not a day and a minute."""
        client = Client()
        client.earn_a_ban(0)
        assert client.knock(-86_400).retry_after_seconds == 60
        assert client.knock(-86_400 + 59.999).banned
        assert not client.knock(-86_400 + 60).banned


class TestForgiveness:
    """The level falls back after 24 clean hours; the operator can lift everything at once."""

    @pytest.mark.parametrize(
        ("clean_seconds", "minutes"),
        [
            (86_400 - 1, 5),  # a second short of 24 h: the second step
            (86_400, 1),  # 24 h: the first step again
        ],
    )
    def test_the_ladder_starts_anew_after_24_clean_hours(self, clean_seconds: int, minutes: int) -> None:
        """Counted from the end of the last ban to the beginning of the next."""
        client = Client()
        client.earn_a_ban(0)
        again = client.earn_a_ban(63 + clean_seconds - 3)
        assert again.retry_after_seconds == minutes * 60

    def test_a_pardon_lifts_the_ban_and_clears_the_ladder(self) -> None:
        """Lifted at once for the next request; the next ban is a first one."""
        client = Client()
        client.earn_a_ban(0)
        client.knock(120)
        client.earn_a_ban(200)
        assert client.knock(210).banned
        client.pardon(211)
        lifted = client.knock(211)
        assert (lifted.banned, client.ban.level) == (False, 0)
        assert client.earn_a_ban(300).retry_after_seconds == 60

    def test_a_pardon_is_applied_once(self) -> None:
        """What happens after it counts again."""
        client = Client()
        client.pardon(0)
        client.earn_a_ban(1)
        assert client.knock(10).banned

    def test_a_pardon_clears_strikes_without_a_ban(self) -> None:
        """60 strikes, a pardon: 60 more are still no ban."""
        client = Client()
        client.knock(0, 61)
        client.knock(3, 60)
        client.pardon(4)
        client.knock(4)  # the window's first 429 anew
        assert not client.knock(7, 60).banned
        assert client.knock(7).ban_began


_STRICT = BanPolicy(minimum_rejections=1)


class TestObedience:
    """A key whose callers all stop until Retry-After when one of them is refused is never banned."""

    @given(
        limits=st.tuples(st.integers(1, 3), st.integers(1, 12)),
        bursts=st.lists(
            st.tuples(
                st.sampled_from((1, 2)),  # which of the account's two keys
                st.integers(0, 70_000),  # pause before the burst, in milliseconds
                st.lists(st.integers(0, 2_000), min_size=1, max_size=15),  # arrivals within the burst
            ),
            max_size=40,
        ),
    )
    @settings(max_examples=300, deadline=None)
    def test_it_is_never_banned(
        self, limits: tuple[int, int], bursts: list[tuple[int, int, list[int]]]
    ) -> None:
        """Two keys of one account send bursts whose requests were all under way before the first answer.

        After a 429 every caller of the key waits as long as the last one says; the rule is at its strictest.
        Callers that each wait out only a 429 of their own are no part of the promise.
        """
        used = AccountWindows()
        callers = {key: Caller(key, 1, *limits) for key in (1, 2)}
        bans = {1: BanState(), 2: BanState()}
        waits_until = {1: 0, 2: 0}
        now_ms = START
        for key, pause, arrivals in bursts:
            now_ms = max(now_ms + pause, waits_until[key])
            for arrival in sorted(arrivals):
                moment = now_ms + arrival
                decision = decide(used, bans[key], callers[key], _STRICT, moment)
                assert not decision.banned
                if not decision.allowed:
                    waits_until[key] = moment + decision.retry_after_seconds * 1_000
            now_ms += max(arrivals)

    def test_a_neighbour_of_the_account_is_not_banned_with_it(self) -> None:
        """A ban hits the key: the other key of the account is only out of quota."""
        client = Client()
        client.earn_a_ban(0)
        other = decide(client.used, BanState(), Caller(2, 1, 60, 10**9), POLICY, START + 4_000)
        assert (other.allowed, other.banned) == (False, False)

    def test_polling_by_the_day_is_no_ban_when_retry_after_is_obeyed(self) -> None:
        """The day is used up: one 429, then silence until midnight."""
        caller = Caller(1, 1, 60, 3)
        used, ban = AccountWindows(), BanState()
        moment = START
        for _ in range(30):
            decision = decide(used, ban, caller, _STRICT, moment)
            assert not decision.banned
            moment += max(1, decision.retry_after_seconds) * 1_000
        assert moment - START > 5 * DAY_MS
