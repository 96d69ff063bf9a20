"""The rule of bans by its default numbers, and whom it can never hit. test_quota_model.py has its edges."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState, apply_pardon
from petstore.core.limits.decision import Decision
from petstore.core.limits.quota import decide, first_refusal
from petstore.core.limits.windows import AccountWindows
from tests.support.cases import every_case
from tests.support.windows import limits_of

START = 1_800_000_030_000
POLICY = BanPolicy()


class Client:
    """A key that knocks at moments given in seconds after START."""

    def __init__(self, per_minute: int = 60, policy: BanPolicy = POLICY) -> None:
        self.caller = Caller(key_id=1, account_id=1, limits=limits_of(per_minute, 10**9))
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
        self.knock(at, self.caller.limits[0] + 1)  # the window, and its first 429
        counted = max(self.policy.strikes_allowed, self.caller.limits[0]) + 1
        decision = self.knock(at + 3, counted)
        assert decision.ban_began
        return decision


@every_case(
    ("per_minute", "rejections"),
    [
        (1, 60),  # max(60, 1)
        (60, 60),  # max(60, 60)
        (61, 61),  # max(60, 61)
        (300, 300),  # max(60, 300)
    ],
)
def test_the_rejection_past_the_bound_begins_it(per_minute: int, rejections: int) -> None:
    """More than max(60, the plan's limit) counted rejections in 5 minutes: the bound itself is not a ban."""
    client = Client(per_minute)
    client.knock(0, per_minute + 1)
    last = client.knock(3, rejections)
    assert (last.allowed, last.banned) == (False, False)
    began = client.knock(3)
    assert (began.banned, began.ban_began) == (True, True)
    assert not client.knock(3).ban_began


def test_each_ban_is_a_step_longer_and_the_last_step_repeats() -> None:
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


_STRICT = BanPolicy(strikes_allowed=1)


class TestObedience:
    """A key whose callers all stop until Retry-After when one of them is refused is never banned."""

    @pytest.mark.slow
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
    @settings(max_examples=100, deadline=None)
    def test_it_is_never_banned(
        self, limits: tuple[int, int], bursts: list[tuple[int, int, list[int]]]
    ) -> None:
        """Two keys of one account send bursts whose requests were all under way before the first answer.

        After a 429 every caller of the key waits as long as the last one says; the rule is at its strictest.
        Callers that each wait out only a 429 of their own are not part of the promise.
        """
        used = AccountWindows()
        callers = {key: Caller(key, 1, limits_of(*limits)) for key in (1, 2)}
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


def test_a_pardon_forgets_everything() -> None:
    """The next ban is as far away, and as short, as that of a key without a refusal."""
    ban = BanState(*range(1, 9))
    apply_pardon(ban, Caller(key_id=1, account_id=1, limits=limits_of(60, 1_000), pardoned_at_ms=START))
    assert ban == BanState(pardoned_ms=START)


def test_the_first_refusal_is_noted_but_is_no_strike() -> None:
    """The note has its window's reset, its time, and the pardon before it."""
    caller = Caller(key_id=1, account_id=1, limits=limits_of(0, 1_000), pardoned_at_ms=7)
    refused = decide(AccountWindows(), None, caller, POLICY, START)
    assert first_refusal(caller, refused) == BanState(refused.binding.reset_at, START, pardoned_ms=7)
