"""Eight processes, one account, demand far above the limit: never one over, never one under (I7).

The long campaign: python -m tests.torture.limits --seed N --seconds S
"""

from __future__ import annotations

import pytest

from tests.support.limits import Campaign
from tests.support.valkey import ValkeyServer


@pytest.mark.slow
@pytest.mark.parametrize("kills", [False, True], ids=["undisturbed", "killed and respawned"])
async def test_the_limit_is_exact(server: ValkeyServer, kills: bool) -> None:
    """Several windows of minute and day. A process that is killed in the middle of its requests and started
    again: what is counted is exact, and all that is in doubt is what it had asked for and not heard."""
    campaign = Campaign(server.url, seed=7, processes=8, kills=kills)
    await campaign.start()
    try:
        for _ in range(8):
            await campaign.window()
    finally:
        await campaign.stop()
    report = campaign.report
    assert report.faults == []
    assert (report.windows, report.kills > 0) == (8, kills)
    assert report.decisions > 2 * report.admitted
