"""The shortest rounds of the campaigns `mirror` and `restored`, so that they go on working."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.report import Report
from verification.torture import mirror, restored
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
