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
    """Three of ten tries fail, some by silence, and the process that sends is killed once: none is lost."""
    report = Report()
    with on_a_file(tmp_path) as place:
        receivers.play(place, report, 1, events=50, kinds=("background",), every_seconds=inf)
    assert report.faults == []
    assert report.counts["times background"] == 1
    assert report.counts["events accepted"] > 150
    assert report.counts["tries"] > report.counts["events accepted"]


@pytest.mark.e2e
@pytest.mark.slow
def test_the_campaign_notices_a_lost_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that accepts and forgets one: without that the campaign would prove nothing."""
    monkeypatch.setattr(receivers, "_END_SECONDS", 5.0)
    forget = receivers.Receiver.accept

    def accept(self: receivers.Receiver, path: str, event_id: str) -> None:
        if path != "/0" or not event_id.endswith("7"):
            forget(self, path, event_id)

    monkeypatch.setattr(receivers.Receiver, "accept", accept)
    report = Report()
    with on_a_file(tmp_path) as place:
        receivers.play(place, report, 1, events=50, kinds=("reload",), failing=0)
    assert any("/0 lacks" in fault for fault in report.faults)
