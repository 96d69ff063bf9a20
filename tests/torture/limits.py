"""The long campaign of limits: python -m tests.torture.limits --seed N --seconds S [--processes N]

Half of its rounds kill workers. A window in which one request too many or too few was admitted is printed
with the seed that repeats it, and the exit code is 1.
"""

from __future__ import annotations

import asyncio
import sys
import time

from tests.support.limits import Campaign, Report
from tests.support.valkey import Client, ValkeyServer
from tests.torture.options import campaign_parser

_WINDOWS_A_ROUND = 20


async def round_of(url: str, seed: int, processes: int) -> Report:
    """Some windows from one seed."""
    Client(url)("FLUSHALL")
    campaign = Campaign(url, seed, processes, kills=seed % 2 == 0)
    await campaign.start()
    try:
        for _ in range(_WINDOWS_A_ROUND):
            await campaign.window()
    finally:
        await campaign.stop()
    return campaign.report


def main() -> int:
    """Run the campaign; the exit code."""
    parser = campaign_parser("limits", __doc__)
    parser.add_argument("--processes", type=int, default=8, help="how many (default: 8)")
    arguments = parser.parse_args()
    ends = time.monotonic() + arguments.seconds
    whole, seed = Report(), arguments.seed
    with ValkeyServer().start() as server:
        while time.monotonic() < ends:
            report = asyncio.run(round_of(server.url, seed, arguments.processes))
            for fault in report.faults:
                sys.stdout.write(f"seed {seed}, {fault}\n")
            whole.windows += report.windows
            whole.decisions += report.decisions
            whole.admitted += report.admitted
            whole.kills += report.kills
            whole.in_doubt += report.in_doubt
            whole.faults += report.faults
            seed += 1
    sys.stdout.write(f"seeds {arguments.seed} to {seed - 1}: {whole}\n")
    return 1 if whole.faults else 0


if __name__ == "__main__":
    sys.exit(main())
