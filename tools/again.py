"""Run what failed once more, alone: python -m tools.again, after `make test` has failed.

A machine that was busy for a moment can break a test that is right. At most three failed tests get a second
run, without others beside them; when all pass, the exit code is 0 and the last lines name them, so that
somebody mends them. A file that can't be collected, an internal error, or too few branches covered gets none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

TESTS_MAX = 3
_CACHE = Path(".pytest_cache/v")
_TESTS_FAILED = 1  # pytest's exit code


def main() -> int:
    """The exit code for the run as a whole."""
    failed = failed_tests()
    if why := _refusal(failed):
        sys.stderr.write(f"Nothing runs again: {why}.\n")
        return 1
    sys.stderr.write(f"These tests failed beside others. They run again, alone: {', '.join(failed)}\n")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "--no-cov", "-q", "-rpfE", *failed], check=False
    ).returncode


def failed_tests() -> list[str]:
    """The tests that failed in the last run, without the group by which xdist had sent them to a worker."""
    return [_without_group(name) for name in _cached("cache/lastfailed", {})]


def _refusal(failed: list[str]) -> str:
    """Why another run can't mend the last one; empty where it can."""
    if _cached("petstore/exit_status", None) != _TESTS_FAILED:
        return "pytest did not end by itself"
    if not failed:
        return "no test failed"
    if len(failed) > TESTS_MAX:
        return f"{len(failed)} tests failed, and at most {TESTS_MAX} may have failed by chance"
    if broken := [name for name in failed if "::" not in name]:
        return f"{', '.join(broken)} could not be collected"
    covered = subprocess.run([sys.executable, "-m", "coverage", "report"], check=False, capture_output=True)
    if covered.returncode:
        return covered.stdout.decode().rstrip().rpartition("\n")[2].rstrip(".") or "coverage is unknown"
    return ""


def _cached(name: str, otherwise: Any) -> Any:
    try:
        return json.loads((_CACHE / name).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return otherwise


def _without_group(name: str) -> str:
    test, at, group = name.rpartition("@")
    return test if at and not group.endswith("]") else name  # else the `@` stands in a parameter


if __name__ == "__main__":
    sys.exit(main())
