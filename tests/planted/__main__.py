"""Plant each bug in a copy of the tree and run its test: python -m tests.planted [NAME…] [--jobs N]

A bug that its test does not catch, or that can't be planted any more, makes the exit code 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.planted.bugs import CLIENT, ROOT, Bug, load
from tests.support import postgres
from tests.support.outside import NODE_MODULES

_COPIED = ("src", "clients", "deploy", "tests", "tools", "verification", "pyproject.toml")
# `.cache`: the databases of benchmarks, a GiB.
_NOT_COPIED = shutil.ignore_patterns(NODE_MODULES.name, ".cache")
_PASSED, _FAILED = 0, 1  # pytest's exit codes; any other means that the test did not run
_TIMEOUT_SECONDS = 600
# The seed gives tests of many examples the same ones each time. Without Schemathesis pytest starts in a third
# of the time.
_PYTEST = ("-qx", "-n0", "--no-cov", "--tb=short", "--timeout=90", "--hypothesis-seed=1", "-pno:schemathesis")


def main() -> int:
    """Plant the bugs that were named, or all; the exit code."""
    known = load()
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which bugs (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once (default: 2)")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(known):
        parser.error(f"no such bug: {', '.join(sorted(unknown))}")
    bugs = {name: known[name] for name in arguments.names or known}
    os.environ[postgres.URL_VARIABLE] = postgres.shared_url()  # else each test starts a server of its own
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="petstore-planted-") as folder:
        clean = _copy(ROOT, Path(folder, "unplanted"))
        if not _passes_without(bugs.values(), clean, arguments.jobs):
            return 1
        with ThreadPoolExecutor(arguments.jobs) as pool:
            caught = list(pool.map(lambda name: _is_caught(name, bugs[name], clean), bugs))
    _say(f"{sum(caught)} of {len(bugs)} caught in {time.monotonic() - began:.0f} s")
    return 0 if all(caught) else 1


def _passes_without(bugs: Collection[Bug], clean: Path, jobs: int) -> bool:
    """Whether all tests pass without a bug: only then a failure means something."""
    found = _python(clean, "-c", "import petstore; print(petstore.__file__)").stdout.strip()
    assert Path(found).is_relative_to(clean), f"{found} would be tested, not the copy"
    tests = sorted({bug.test for bug in bugs})
    for option in ("--collect-only", f"-n{jobs}"):  # workers do not tell which test is missing
        ran = _test(clean, tests, option)
        if ran.returncode != _PASSED:
            _say(f"{ran.stdout}{ran.stderr}\nThese tests must pass without a bug; nothing was planted.")
            return False
    return True


def _is_caught(name: str, bug: Bug, clean: Path) -> bool:
    began = time.monotonic()
    result = bug.fault(clean)
    if result is None:
        tree = _copy(clean, clean.with_name(name))
        bug.path(tree).write_text(bug.planted_in(clean), encoding="utf-8")
        ran = _test(tree, [bug.test])
        shutil.rmtree(tree)
        results = {_FAILED: "caught", _PASSED: f"SURVIVED {bug.test}: {bug.broken}"}
        result = results.get(ran.returncode, f"did not run:\n{ran.stdout}{ran.stderr}")
    _say(f"{name:45} {time.monotonic() - began:5.1f} s  {result}")
    return result == "caught"


def _copy(source: Path, tree: Path) -> Path:
    """What the tests need of a tree, as another one."""
    tree.mkdir()
    for name in _COPIED:
        if (source / name).is_dir():
            shutil.copytree(source / name, tree / name, ignore=_NOT_COPIED)
        else:
            shutil.copy2(source / name, tree / name)
    (tree / NODE_MODULES.relative_to(ROOT)).symlink_to(NODE_MODULES)
    return tree


def _test(tree: Path, tests: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    return _python(tree, "-m", "pytest", *_PYTEST, *options, *tests)


def _python(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with the package of the tree."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / CLIENT}"},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
    )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
