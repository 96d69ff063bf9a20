"""The clock of the machine."""

from __future__ import annotations

from petstore.core.clock import AwakeClock


def test_a_pause_of_the_machine_is_no_time() -> None:
    """A round of work and wait that ends more than a second after its timeout met a pause, wherever: the
    excess is left out."""
    now = 100.0
    awake = AwakeClock(lambda: now)
    began = awake()
    rounds = ((0.0, 5.0, 5.0), (0.5, 5.0, 3.0), (0.0, 5.0, 6.0), (0.0, 5.0, 65.0), (0.0, 1.0, 31.0))
    for worked, timeout, waited in (*rounds, (30.0, 0.0, 0.0)):
        now += worked + waited
        awake.wait_ended(timeout)
    assert awake() - began == 5.0 + 3.5 + 6.0 + 5.0 + 1.0
