"""Sixteen processes with one key, each with a client of its own, on a steered clock.

The long campaign: python -m verification.torture processes --seed 1 --rounds 100
"""

from __future__ import annotations

import pytest
from petstore_client.limiter import Limiter

from verification.simulation.callers.fleet import KINDS, play

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["each 4 s", "mixed"])
def test_processes_that_know_nothing_of_each_other_are_not_banned(kind: str) -> None:
    """Ten windows of the Free plan: no ban, and the quota is used. Processes that only wait for Retry-After
    are banned in each of these kinds of demand."""
    assert kind in KINDS
    (result,) = play([kind], [1]).values()
    assert result.faults == []


def test_processes_that_heed_nothing_but_their_own_refusals_are_banned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The runs would show it if the client counted for itself alone."""
    monkeypatch.setattr(Limiter, "opens_at", lambda self, waiter, now: max(self._hold_until, now))
    (result,) = play(["each 4 s"], [1]).values()
    assert result.bans > 0
