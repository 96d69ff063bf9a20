"""tools/again.py: which failed runs get a second one, and what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

# Fails in its first run, as a test does for which a busy machine had no time.
_ONCE = """\
from pathlib import Path

import pytest

@pytest.mark.xdist_group("of two")
@pytest.mark.parametrize("word", ["a@b", "c"])
def test_by_chance(word):
    ran = Path(word)
    assert ran.exists() or ran.touch()

def test_right():
    pass
"""
_ALWAYS = """
def test_wrong():
    raise AssertionError
"""
# The hooks of tests/conftest.py that matter here, without what else it imports.
_CONFTEST = """\
from tests.support.distribution import keep_groups_together as pytest_collection_modifyitems
from tests.support.distribution import keep_status as pytest_sessionfinish
"""


class Project:
    """A folder with tests of its own."""

    def __init__(self, folder: Path, tests: str) -> None:
        self._folder = folder
        (folder / "conftest.py").write_text(_CONFTEST)
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --dist=loadgroup -p xdist -p pytest_cov\n")
        (folder / "test_of_it.py").write_text(tests)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A module of Python. pytest loads the plugins of pytest.ini alone: it starts sooner."""
        return subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=self._folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            check=False,
            capture_output=True,
            text=True,
        )


@pytest.mark.e2e
@pytest.mark.slow
class TestASecondRun:
    """What failed, alone."""

    def test_it_passes_what_had_failed_by_chance_and_names_it(self, tmp_path: Path) -> None:
        """The run is green, and the lines before pytest's count say which tests to mend."""
        project = Project(tmp_path, _ONCE)
        first = project.run("pytest", "-n2", "--cov", "--cov-report=")
        assert "2 failed, 1 passed" in first.stdout
        again = project.run("tools.again")
        assert again.returncode == 0, again
        *_, one, another, count = again.stdout.splitlines()
        assert (one, another) == (
            "PASSED test_of_it.py::test_by_chance[a@b]",
            "PASSED test_of_it.py::test_by_chance[c]",
        )
        assert count.startswith("2 passed")

    def test_it_fails_what_fails_again(self, tmp_path: Path) -> None:
        """A fault stays a fault."""
        project = Project(tmp_path, _ALWAYS)
        project.run("pytest", "--cov", "--cov-report=")
        again = project.run("tools.again")
        assert again.returncode == 1
        assert "1 failed" in again.stdout


class TestNoSecondRun:
    """Faults of another kind than a test that fell over by chance."""

    @pytest.mark.parametrize(
        ("exit_status", "failed", "why"),
        [
            (
                1,
                [f"a.py::test_{n}" for n in range(4)],
                "4 tests failed, and at most 3 may have failed by chance",
            ),
            (1, ["a.py"], "a.py could not be collected"),
            (1, [], "no test failed"),
            (1, ["a.py::test_a"], "No data to report"),
            (2, ["a.py::test_a"], "pytest did not end by itself"),
            (3, ["a.py::test_a"], "pytest did not end by itself"),
            (None, [], "pytest did not end by itself"),
        ],
    )
    def test_it_is_refused_with_the_reason(
        self, tmp_path: Path, exit_status: int | None, failed: list[str], why: str
    ) -> None:
        """More than three, none, an internal error, a broken file, too little covered: the run has failed."""
        cache = tmp_path / ".pytest_cache" / "v"
        for name, content in (
            ("petstore/exit_status", exit_status),
            ("cache/lastfailed", dict.fromkeys(failed, True)),
        ):
            if content is not None:
                (cache / name).parent.mkdir(parents=True)
                (cache / name).write_text(json.dumps(content))
        again = Project(tmp_path, _ALWAYS).run("tools.again")
        assert (again.returncode, again.stderr) == (1, f"Nothing runs again: {why}.\n")
