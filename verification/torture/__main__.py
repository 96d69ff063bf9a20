"""Long campaigns, one after another: `make torture ARGS='[CAMPAIGN…] --seed N [--seconds S | --rounds R]'`

A round that breaks a promise is printed with the seed that repeats it; then the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
from pkgutil import resolve_name

from tests.support.report import Report

_SUPPORTED = (
    *("powercut", "limits", "oldset", "restarts", "backend", "orders", "kills", "imports", "client"),
    *("processes", "signins"),
)
_CAMPAIGNS = (
    *(*_SUPPORTED, "flood", "stalled", "contract", "migration", "refusals", "sixteen", "mirror", "restored"),
    *("receivers", "mail"),
)


def main() -> int:
    """Run them; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m verification.torture", description=__doc__)
    names = ", ".join(_CAMPAIGNS)
    parser.add_argument("campaigns", nargs="*", help=f"which: {names} (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of each one's first round (default: 1)")
    parser.add_argument("--seconds", type=float, default=60, help="for each (default: 60)")
    parser.add_argument("--rounds", type=int, help="so many for each, instead of --seconds")
    arguments = parser.parse_args()
    if unknown := set(arguments.campaigns) - set(_CAMPAIGNS):
        parser.error(f"no such campaign: {', '.join(sorted(unknown))}; there are {names}")
    failed = []
    for name in arguments.campaigns or _CAMPAIGNS:
        sys.stdout.write(f"-- {name}\n")
        sys.stdout.flush()
        report = Report(arguments.rounds)
        try:
            place = f"supported:{name}" if name in _SUPPORTED else f"{name}:run"
            resolve_name(f"verification.torture.{place}")(report, arguments.seed, arguments.seconds)
        except Exception as error:  # the next campaign runs all the same
            report.fault(f"{type(error).__name__}: {error}")
        sys.stdout.write(f"from seed {arguments.seed} on: {report}\n")
        failed += [name] if report.faults else []
    sys.stdout.write(f"failed: {', '.join(failed)}\n" if failed else "nothing was found\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
