"""The shortest round of the campaign `mail`, so that it goes on working."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.report import Report
from verification.torture import mail
from verification.torture.places import on_a_file


def _play(folder: Path) -> Report:
    report = Report()
    with on_a_file(folder) as place:
        mail.play(place, report, 1, seconds=3, kinds=("background",), every_seconds=2)
    return report


@pytest.mark.e2e
@pytest.mark.slow
def test_each_order_is_told(tmp_path: Path) -> None:
    """The server refuses one step of five, and the process that sends is killed: nothing is lost."""
    report = _play(tmp_path)
    assert report.faults == []
    assert report.counts["orders"] > 0
    assert report.counts["times background"] > 0


@pytest.mark.e2e
@pytest.mark.slow
def test_the_campaign_notices_a_lost_mail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that forgets what it took for one person: without that the campaign would prove nothing."""
    monkeypatch.setattr(mail, "_END_SECONDS", 5.0)
    monkeypatch.setattr(mail, "_PEOPLE", ("anna", "otto"))
    told = mail._Round._told

    def forget(self: mail._Round) -> object:
        return {**told(self), "otto": told(self)["anna"] - told(self)["anna"]}

    monkeypatch.setattr(mail._Round, "_told", forget)
    assert any("otto was not told" in fault for fault in _play(tmp_path).faults)
