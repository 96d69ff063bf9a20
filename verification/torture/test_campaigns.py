"""The shortest rounds of campaigns, so that they go on working."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from tests.support.report import Report
from verification.torture import mail, mirror, receivers, restored
from verification.torture.following import Mirror
from verification.torture.places import on_a_file

CREATED = {"type": "pet.created", "data": {"id": 7, "name": "Rex", "categoryId": 1, "status": "pending"}}
SOLD = {"type": "pet.updated", "data": {"id": 7, "status": "sold", "previous": {"status": "pending"}}}


@pytest.mark.e2e
@pytest.mark.slow
def test_followers_show_what_the_lists_show_after_a_kill(tmp_path: Path) -> None:
    """A file, three writers, a service that is killed: one sequence for all, and no difference."""
    report = Report()
    with on_a_file(tmp_path) as place:
        mirror.play(place, report, 1, troubles=1, writers=3, rows=100, kinds=("service",))
    assert report.faults == []
    assert report.counts["events in the feed"] > 40
    assert report.counts["times service"] == 1


@pytest.mark.e2e
@pytest.mark.slow
def test_no_follower_goes_on_from_before_a_restore(tmp_path: Path) -> None:
    """Each is refused, and follows the recipe."""
    report = Report()
    restored.play("restored file", tmp_path, report, 1, changes=40)
    assert report.faults == []
    assert report.counts["bookmarks refused"] > 1


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


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ([SOLD], "is about what the mirror lacks"),
        ([CREATED, CREATED], "is created again"),
        ([CREATED, SOLD, SOLD], "was {'status': 'sold'} here"),
    ],
)
def test_a_mirror_notices_what_does_not_fit(told: list[dict[str, object]], fault: str) -> None:
    """A campaign that could not see a fault would prove nothing."""
    whole = Mirror()
    for event in told:
        whole.apply(event)
    assert [fault in found for found in whole.faults] == [True]
