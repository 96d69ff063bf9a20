"""The long campaign of older data sets: python -m tests.torture.oldset --seed N --seconds S

A round in which more was handed out again than the store could not know, or a ban was forgotten, is printed
with the seed that repeats it, and the exit code is 1.
"""

from __future__ import annotations

import asyncio
import sys
import time

from tests.support.oldset import Report, play
from tests.support.valkey import ValkeyServer
from tests.torture.options import campaign_parser


def main() -> int:
    """Run the campaign; the exit code."""
    arguments = campaign_parser("oldset", __doc__).parse_args()
    ends = time.monotonic() + arguments.seconds
    report, seed = Report(), arguments.seed
    with ValkeyServer().start() as server:
        while time.monotonic() < ends:
            asyncio.run(play(server, seed, report))
            seed += 1
    for fault in report.faults:
        sys.stdout.write(f"{fault}\n")
    sys.stdout.write(f"seeds {arguments.seed} to {seed - 1}: {report}\n")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
