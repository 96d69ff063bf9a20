"""Four processes, one account, demand far above the limit: never one over, never one under (I7).

The long campaign, of eight: python -m verification.torture limits
"""

from __future__ import annotations

import pytest

from tests.support.limits import play
from tests.support.report import Report
from tests.support.valkey import ValkeyServer

_WINDOWS = 5


@pytest.mark.slow
async def test_the_limit_is_exact(server: ValkeyServer) -> None:
    """Several windows of minute and day. A process that is killed in the middle of its requests and started
    again: what is counted is exact, and all that is in doubt is what it had asked for and not heard."""
    report = Report()
    await play(server.url, 11, report, _WINDOWS, kills=True, processes=4)
    assert report.faults == []
    assert report.counts["windows"] == _WINDOWS > report.counts["windows without a kill"] > 0
    assert report.counts["decisions"] > 2 * report.counts["admitted"]
