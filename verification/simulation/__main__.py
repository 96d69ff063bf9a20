"""`python -m verification.simulation`: runs of the simulation, and tables of them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator

import msgspec

from verification.simulation import scenarios, tables
from verification.simulation.scenarios import OMITTED, Run, seen
from verification.simulation.world import Result, World

_GROUPS: dict[str, Callable[[int, list[int]], Iterator[Run]]] = {
    "admission": scenarios.admission,
    "outages": scenarios.outages,
    "staleness": scenarios.staleness,
    "caches": scenarios.caches,
}


class Session:
    """Runs one after another, until the time is up; what was left out is said."""

    def __init__(self, at_most_seconds: float) -> None:
        self._until = time.monotonic() + at_most_seconds
        self.broken: list[str] = []
        self.left: list[str] = []

    def group(self, name: str, runs: Iterator[Run]) -> None:
        """Run a group, and print its table."""
        done: list[tuple[Run, Result]] = []
        for run in runs:
            if time.monotonic() > self._until:
                self.left.append(f"{name}: {run.name}")
                continue
            result = World(run.setup).run()
            done.append((run, result))
            if not run.kept(result):
                self.broken.append(f"{name}: {run.name}")
        print(tables.of_group(name, done), flush=True)

    def omissions(self, seed: int) -> None:
        """Each step of the protocol left out once."""
        rows = []
        for omitted in OMITTED:
            if time.monotonic() > self._until:
                self.left.append(f"omissions: {omitted.step}")
                continue
            setup = msgspec.structs.replace(omitted.setup, seed=seed)
            with_it = World(setup).run()
            without = World(msgspec.structs.replace(setup, left_out=omitted.step)).run()
            was_seen = seen(omitted, with_it, without)
            if not was_seen:
                self.broken.append(f"omissions: {omitted.step}")
            rows.append((omitted, with_it, without, was_seen))
        print(tables.of_omissions(rows), flush=True)


def _counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main() -> int:
    """1 when a promise was broken, or a fault was not seen."""
    parser = argparse.ArgumentParser(prog="python -m verification.simulation", description=__doc__)
    known = (*_GROUPS, "omissions")
    parser.add_argument("groups", nargs="*", help=f"{', '.join(known)} (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="the same one gives the same numbers (default 1)")
    parser.add_argument(
        "--replicas", type=_counts, default=[1, 2, 8, 64], help="processes (default 1,2,8,64)"
    )
    parser.add_argument(
        "--at-most", type=float, default=300.0, metavar="SECONDS", help="then stop (default 300)"
    )
    arguments = parser.parse_args()
    groups = arguments.groups or known
    if unknown := set(groups) - set(known):
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    session = Session(arguments.at_most)
    for group in groups:
        if group in _GROUPS:
            session.group(group, _GROUPS[group](arguments.seed, arguments.replicas))
        else:
            session.omissions(arguments.seed)
    if session.left:
        print("The time was up before: " + "; ".join(session.left))
    if session.broken:
        print("NOT AS PROMISED: " + "; ".join(session.broken))
    return 1 if session.broken else 0


if __name__ == "__main__":
    sys.exit(main())
