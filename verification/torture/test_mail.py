"""The shortest round of the campaign `mail`, so that it goes on working."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.report import Report
from verification.torture import mail
from verification.torture.places import on_a_file


@pytest.mark.e2e
@pytest.mark.slow
def test_each_order_is_told(tmp_path: Path) -> None:
    """The server refuses one step of five, and the process that sends is killed: nothing is lost. Mail to
    one person that is lost afterwards is noticed: without that the campaign would prove nothing."""
    report = Report()
    with on_a_file(tmp_path) as place:
        round_ = mail.play(place, report, 1, seconds=3, kinds=("background",), every_seconds=2)
        assert report.faults == []
        assert report.counts["orders"] > 0
        assert report.counts["times background"] > 0
        kept = [each for each in round_.server.messages if each["To"].addresses[0].username != "otto"]
        round_.server.messages[:] = kept
        round_.judge()
    (fault,) = report.faults
    assert "otto was not told" in fault
