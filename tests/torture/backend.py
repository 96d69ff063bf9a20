"""The long campaign of killed backends: python -m tests.torture.backend --seed N --seconds S

A process of PostgreSQL is killed between a rollback and a commit, after which transaction ids are given out
again. A list or a key that is answered from before the commit is printed, and the exit code is 1. The seed
changes nothing: the rounds are all alike.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.support.crashes import Crashes
from tests.support.postgres import PostgresServer, fresh_database
from tests.support.service import open_shop
from tests.torture.options import campaign_parser

_ROUNDS_A_DATABASE = 50  # a page takes a hundred animals at most


async def rounds(server: PostgresServer, url: str, ends: float) -> tuple[int, list[str]]:
    """Rounds on one database until the time is over: how many, and what was wrong."""
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        async with open_shop(Path(folder), database_url=url) as shop:
            crashes = Crashes(server, url, shop)
            done = 0
            while done < _ROUNDS_A_DATABASE and time.monotonic() < ends:
                faults += await crashes.round()
                done += 1
    return done, faults


def main() -> int:
    """Run the campaign; the exit code."""
    arguments = campaign_parser("backend", __doc__, is_seeded=False).parse_args()
    ends = time.monotonic() + arguments.seconds
    done, failed = 0, 0
    with PostgresServer().start() as server:
        while time.monotonic() < ends:
            with fresh_database(server.url()) as url:
                count, faults = asyncio.run(rounds(server, url, ends))
            for fault in faults:
                sys.stdout.write(f"{fault}\n")
            done += count
            failed += len(faults)
    sys.stdout.write(f"{done} processes killed, {2 * done} answers after a commit, {failed} of them stale\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
