"""SIGKILL at any moment: nothing acknowledged is lost, no identifier is used again (I1, I3, I6),
and the journal has each animal once (I22).

The long campaign: python -m verification.torture kills
"""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.support.kills import play
from tests.support.report import Report
from tests.support.server import issue_key, running_server, start_server
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-kill")]

KILLS = 3


def test_every_acknowledged_animal_is_there_after_each_kill(tmp_path: Path) -> None:
    """Killed at random moments under load and started again on the same file: what was answered is there
    under its identifier; what was not is there once or not at all, and a retry with its Idempotency-Key
    makes it exactly one."""
    report = Report()
    play(tmp_path, report, 20_301_205, KILLS)
    assert report.faults == []
    assert report.counts["acknowledged"] >= KILLS * 5


def test_a_kill_costs_at_most_a_second_of_counts(tmp_path: Path) -> None:
    """What was counted more than a second before it stays counted; what came after may be forgotten."""
    key = issue_key(tmp_path / "petstore.db", per_minute=1_000, per_day=1_000)

    def written() -> int:
        connection = apsw.Connection(str(tmp_path / "petstore.db"))
        used = connection.execute("SELECT day_used FROM account_windows").get
        connection.close()
        return int(used or 0)

    server = start_server(tmp_path)
    try:
        for _ in range(30):
            server.request("GET", "/v1/pets", key=key)
        wait_for(lambda: written() == 30, "the counter store")
        for _ in range(5):
            server.request("GET", "/v1/pets", key=key)
        server.kill()
    finally:
        server.kill()
    with running_server(tmp_path) as again:
        answer = again.request("GET", "/v1/pets", key=key)
        day = answer.headers["ratelimit"].partition('"day";r=')[2].partition(";")[0]
        assert 1_000 - 36 <= int(day) <= 1_000 - 31
