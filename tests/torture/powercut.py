"""The long campaign of power cuts: python -m tests.torture.powercut --seed N --cuts N --seconds S

Each recording of a script is cut a few hundred times. A cut that loses something is printed with all that
is needed to repeat it, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.support import powercut

_CUTS_A_RECORDING = 500
_JOBS = 90


def main() -> int:
    """Run the campaign; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.powercut", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first recording (default: 1)")
    parser.add_argument("--cuts", type=int, default=1_000_000, help="how many at most (default: 1000000)")
    parser.add_argument("--seconds", type=float, default=60, help="how long at most (default: 60)")
    arguments = parser.parse_args()
    ends = time.monotonic() + arguments.seconds
    done = failed = acknowledged = 0
    seed = arguments.seed
    with tempfile.TemporaryDirectory(prefix="powercut-") as name:
        while done < arguments.cuts and time.monotonic() < ends:
            folder = Path(name) / str(seed)
            folder.mkdir()
            recording = powercut.record(folder, seed, _JOBS)
            for cut in powercut.choose(recording, seed, min(_CUTS_A_RECORDING, arguments.cuts - done)):
                path = powercut.leave(recording, cut, folder / "cut")
                faults = powercut.check(recording, cut, path)
                acknowledged += sum(at <= cut.at for at, _, _ in recording.added)
                done += 1
                if faults:
                    failed += 1
                    sys.stdout.write(f"seed {seed}, {cut}: {'; '.join(faults[:5])}\n")
            sys.stdout.write(f"seed {seed}: {done} cuts, {acknowledged} acknowledged, {failed} failed\n")
            sys.stdout.flush()
            seed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
