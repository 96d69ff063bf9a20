"""The shortest round of the campaign `receivers`, so that it goes on working."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from tests.support.report import Report
from verification.torture import receivers
from verification.torture.places import on_a_file


@pytest.mark.e2e
@pytest.mark.slow
def test_each_event_arrives_at_receivers_that_fail(tmp_path: Path) -> None:
    """Three of ten tries fail, some by silence, and the process that sends is killed once: none is lost. One
    that is forgotten afterwards is noticed: without that the campaign would prove nothing."""
    report = Report()
    with on_a_file(tmp_path) as place:
        round_ = receivers.play(
            place, report, 1, seconds=0, rows=50, kinds=("background",), every_seconds=inf, sooner=100_000
        )
        assert report.faults == []
        assert report.counts["times background"] == 1
        assert report.counts["events accepted"] > 150
        assert report.counts["tries"] > report.counts["events accepted"]
        round_.receiver.accepted["/0"].popitem()
        round_.judge()
    (fault,) = report.faults
    assert "/0 lacks 1" in fault
