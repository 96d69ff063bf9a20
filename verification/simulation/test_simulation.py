"""The simulation of many processes: it keeps the promises, and would notice a broken one."""

from __future__ import annotations

import msgspec
import pytest

from verification.benchmarks.capacity import model
from verification.simulation.audit import Admissions, Answer
from verification.simulation.scenarios import OMITTED, Omitted, seen
from verification.simulation.virtual import EPOCH_MS
from verification.simulation.world import Outage, Result, Setup, World

_LIMITED = Setup(limited=True, requests=100.0, seconds=25.0, accounts=20)
_WRITTEN = Setup(
    requests=200.0, seconds=12.0, accounts=20, pages=10, writes=4.0, key_changes=1.0, deaths=0.02
)


def _run(setup: Setup, **changes: object) -> Result:
    return World(msgspec.structs.replace(setup, **changes)).run()


def test_the_same_seed_gives_the_same_numbers() -> None:
    """What was found can be found again."""
    setup = msgspec.structs.replace(_WRITTEN, seconds=3.0)
    assert _run(setup) == _run(setup)
    assert _run(setup) != _run(setup, seed=2)


@pytest.mark.parametrize("processes", [1, 8])
def test_limits_are_exact_over_any_number_of_processes(processes: int) -> None:
    """Demand above the limits, over a midnight: not one request over, not one under."""
    result = _run(_LIMITED, processes=processes)
    assert result.refused > 100
    assert (result.over, result.under, result.failed, result.local) == (0, 0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["kill", "hang", "old", "empty", "cut"])
def test_an_outage_fails_nobody_and_stays_within_its_bound(what: str) -> None:
    """Each process admits its share of a limit at the most, on top of what the shared counters admitted."""
    result = _run(_LIMITED, outages=(Outage(what, 12.0, 5.0),))
    assert 0 < result.local < 2_000  # the outage ended with what caused it
    assert result.failed == 0
    assert result.minute_excess <= 1
    assert result.day_excess <= 1


def test_no_answer_is_stale_while_writers_come_go_and_die() -> None:
    """What was acknowledged is in every later answer, and nobody falls behind what another client saw."""
    result = _run(_WRITTEN)
    assert (result.stale_pages, result.stale_callers, result.regressed) == (0, 0, 0)
    assert result.page_hits > 0.05


def _shortened(omitted: Omitted) -> Setup:
    """Return the setup, only so long that what is omitted shows."""
    return msgspec.structs.replace(omitted.setup, seconds=20.0 if omitted.setup.outages else 6.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "omitted",
    [omitted for omitted in OMITTED if omitted.step in ("mark", "bump", "shared counters", "epoch")],
    ids=lambda omitted: omitted.step,
)
def test_a_step_of_the_protocol_left_out_is_seen(omitted: Omitted) -> None:
    """A simulation that could not see a fault would prove nothing."""
    setup = _shortened(omitted)
    assert seen(omitted, _run(setup), _run(setup, left_out=omitted.step))


@pytest.mark.slow
def test_the_formula_for_kept_pages_agrees_with_the_simulation() -> None:
    """Decision 0022 calculates with it."""
    result = _run(Setup(processes=4, requests=400.0, seconds=10.0, writes=2.0, pages=50))
    assert result.page_hits == pytest.approx(result.page_hits_by_formula, abs=0.06)


def test_the_audit_counts_windows_by_itself() -> None:
    """Two requests a minute: the third is one too many, and a refusal in the next minute one too few."""
    admissions = Admissions()
    for seconds, allowed in ((0.5, True), (1.0, True), (2.0, True), (3.0, False), (60.0, False)):
        answer = Answer(EPOCH_MS + int(seconds * 1_000), allowed=allowed, banned=False, local=False)
        admissions.note(1, (2, 100), answer)
    assert admissions.over_and_under() == (1, 1)


def test_more_load_needs_more_workers() -> None:
    """The model's fleet grows with its load, and keeps less in each of its workers."""
    small, large = (model.need(model.Load(lists, lists / 1_000, 1_000.0)) for lists in (5_000.0, 50_000.0))
    assert small.workers < large.workers
    assert small.kept > large.kept
    assert large.valkey == pytest.approx(10 * small.valkey, rel=0.05)
