"""`python -m verification.benchmarks`: runs the groups of rows one after another and publishes them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from verification.benchmarks.interleaved import Plan
from verification.benchmarks.load.closed import uses_wrk
from verification.benchmarks.report import Row, publish
from verification.benchmarks.rows import (
    costs,
    events,
    growth,
    latency,
    peers,
    reads,
    shared,
    versus,
    webhooks,
    writes,
)


def _groups(*, full: bool) -> dict[str, Callable[[Plan], list[Row]]]:
    return {
        "read": reads.measure,
        "write": writes.measure,
        "growth": lambda plan: growth.measure_animals(plan, full=full),
        "keys": growth.measure_keys,
        "log": costs.measure_log,
        "resources": costs.measure_resources,
        "latency": latency.measure,
        "shared": shared.measure,
        "events": events.measure,
        "webhooks": webhooks.measure,
        "peers": peers.measure,
    }


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(prog="python -m verification.benchmarks", description=__doc__)
    parser.add_argument(
        "groups", nargs="*", help=f"which groups: {', '.join(_groups(full=True))} (default: all)"
    )
    parser.add_argument("--seconds", type=float, default=4.0, help="length of one turn (default 4)")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each measurement (default 5)")
    parser.add_argument("--versus", metavar="COMMIT", help="only this program beside that one, by turns")
    parser.add_argument("--small", action="store_true", help="without 10,000,000 animals (a GiB of disk)")
    parser.add_argument("--dry", action="store_true", help="leave verification/benchmarks/RESULTS.md alone")
    arguments = parser.parse_args()
    groups = _groups(full=not arguments.small)
    if arguments.versus:
        groups = {"versus": lambda plan: versus.measure(plan, arguments.versus)}
    unknown = set(arguments.groups) - set(groups)
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}; there are {', '.join(groups)}")
    print(
        "load by wrk"
        if uses_wrk()
        else "load by the bundled generator (apt-get install wrk for the better one)"
    )
    rows: list[Row] = []
    for name in arguments.groups or groups:
        print(f"measuring {name} …", flush=True)
        rows += groups[name](Plan(arguments.seconds, arguments.rounds))
    title = "Versus" if arguments.versus else f"Groups: {', '.join(arguments.groups) or 'all'}"
    publish(rows, title, " ".join([parser.prog, *sys.argv[1:]]), keep=not arguments.dry)


if __name__ == "__main__":
    main()
