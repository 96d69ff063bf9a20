"""Tests of one `xdist_group` run in one worker, which sets up once what they share."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.xdist_group("together")


@pytest.mark.parametrize("number", range(6))
def test_a_group_has_one_worker(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str, testrun_uid: str, number: int
) -> None:
    """Tests of a group share one worker; singly they would go to all workers by turns."""
    traces = tmp_path_factory.getbasetemp().parent / f"together-{testrun_uid}"
    traces.mkdir(exist_ok=True)
    (traces / worker_id).touch()
    assert [path.name for path in traces.iterdir()] == [worker_id]
