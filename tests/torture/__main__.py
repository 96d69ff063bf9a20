"""All long campaigns, one after another: python -m tests.torture --seed N --seconds S

Each gets the seed and the seconds. The exit code is 1 when one of them found something.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

_CAMPAIGNS = ("powercut", "limits", "oldset", "restarts", "backend", "flood", "stalled")


def main() -> int:
    """Run them; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("campaigns", nargs="*", help=f"which: {', '.join(_CAMPAIGNS)} (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of every campaign (default: 1)")
    parser.add_argument("--seconds", type=float, default=60, help="for each (default: 60)")
    arguments = parser.parse_args()
    if unknown := set(arguments.campaigns) - set(_CAMPAIGNS):
        parser.error(f"no such campaign: {', '.join(sorted(unknown))}; there are {', '.join(_CAMPAIGNS)}")
    failed = []
    for name in arguments.campaigns or _CAMPAIGNS:
        sys.stdout.write(f"-- {name}\n")
        sys.stdout.flush()
        bounds = ["--seed", str(arguments.seed), "--seconds", str(arguments.seconds)]
        if subprocess.run([sys.executable, "-m", f"tests.torture.{name}", *bounds], check=False).returncode:
            failed.append(name)
    sys.stdout.write(f"failed: {', '.join(failed)}\n" if failed else "nothing was found\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
