"""Many callers order the same animals at once: each goes to one of them, also when processes are killed.

The long campaign: python -m verification.torture orders
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.orders import KINDS, play
from tests.support.report import Report

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("e2e-orders")]


@pytest.mark.parametrize("kind", KINDS)
def test_one_caller_gets_each_animal(tmp_path: Path, kind: str) -> None:
    """One 201 for each animal, 409 for all others, and orders, animals and the journal agree (I21). After a
    kill every caller asks again with its key, and an order that was acknowledged is there (I6)."""
    report = Report()
    play(kind, tmp_path, report, 20, callers=16, animals=12, kills=True)
    assert report.faults == []
    assert report.counts["kills"] > 0
