"""The long campaign of crashes: python -m tests.torture.restarts --seed N --seconds S

PostgreSQL is stopped at random moments under load, as in a crash or in order, and started again. What was
acknowledged and is lost, or what is there twice, is printed with the seed, and the exit code is 1.
"""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time

from petstore.core.limits.plans import FREE
from petstore.storage.backend import backend_for
from tests.support.clock import ManualClock
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.restarts import Load
from tests.torture.options import campaign_parser

_RESTARTS_A_ROUND = 10


async def round_of(server: PostgresServer, url: str, seed: int) -> tuple[int, float, list[str]]:
    """Some restarts from one seed: additions acknowledged, the longest way back, what is wrong."""
    chance = random.Random(seed)
    store = backend_for(url).open(ManualClock())
    slowest = 0.0
    try:
        await store.accounts.add("shop", FREE)
        load = Load(store)
        async with load.going_on():
            for _ in range(_RESTARTS_A_ROUND):
                how = chance.choice([signal.SIGQUIT, signal.SIGQUIT, signal.SIGINT])
                slowest = max(slowest, await load.restart(server, how, chance.randrange(400)))
    finally:
        await store.close()
    return len(load.acknowledged), slowest, load.faults(url)


def main() -> int:
    """Run the campaign; the exit code."""
    arguments = campaign_parser("restarts", __doc__).parse_args()
    ends = time.monotonic() + arguments.seconds
    seed, restarts, acknowledged, slowest, failed = arguments.seed, 0, 0, 0.0, 0
    with PostgresServer(on_disk=True).start() as server:
        while time.monotonic() < ends:
            with fresh_database(server.url()) as url:
                added, longest, faults = asyncio.run(round_of(server, url, seed))
            for fault in faults[:5]:
                sys.stdout.write(f"seed {seed}, {fault}\n")
            restarts += _RESTARTS_A_ROUND
            acknowledged += added
            slowest = max(slowest, longest)
            failed += len(faults)
            seed += 1
    sys.stdout.write(
        f"seeds {arguments.seed} to {seed - 1}: {restarts} restarts, {acknowledged} acknowledged, {failed}"
        f" lost or doubled, first success at most {slowest:.2f} s after a return\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
