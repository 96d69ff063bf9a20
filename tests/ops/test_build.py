"""Which commit a program is: from real checkouts, and from what `git archive` packs."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from petstore.ops import build

ROOT = Path(__file__).parents[2]


def git(folder: Path, *words: str) -> str:
    """What git prints, with nothing of this machine's configuration."""
    names = {
        "GIT_AUTHOR_NAME": "x",
        "GIT_AUTHOR_EMAIL": "x",
        "GIT_COMMITTER_NAME": "x",
        "GIT_COMMITTER_EMAIL": "x",
    }
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    kept = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=kept | names | quiet, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with two commits."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    git(folder, "commit", "-q", "--allow-empty", "-m", "second")
    return folder


class TestCheckout:
    """As git itself says."""

    def test_a_branch(self, checkout: Path) -> None:
        """Its file holds the hash."""
        assert build.of_checkout(checkout) == git(checkout, "rev-parse", "HEAD")

    def test_a_packed_branch(self, checkout: Path) -> None:
        """`git gc` moves all branches into one file."""
        git(checkout, "branch", "other", "HEAD~1")
        git(checkout, "pack-refs", "--all")
        assert build.of_checkout(checkout) == git(checkout, "rev-parse", "HEAD")

    def test_a_commit_that_is_no_branch(self, checkout: Path) -> None:
        """A checkout of a tag, for example."""
        git(checkout, "checkout", "-q", "--detach", "HEAD~1")
        assert build.of_checkout(checkout) == git(checkout, "rev-parse", "HEAD")

    @pytest.mark.parametrize("packed", [False, True])
    def test_a_worktree(self, checkout: Path, tmp_path: Path, packed: bool) -> None:
        """Its branch is noted in the repository that it belongs to."""
        other = tmp_path / "other"
        git(checkout, "worktree", "add", "-q", "-b", "other", str(other), "HEAD~1")
        if packed:
            git(checkout, "pack-refs", "--all")
        assert build.of_checkout(other) == git(other, "rev-parse", "HEAD") != build.of_checkout(checkout)

    def test_no_checkout(self, tmp_path: Path) -> None:
        """A directory of files, and a repository without a commit."""
        assert build.of_checkout(tmp_path) == "unknown"
        git(tmp_path, "init", "-q")
        with pytest.raises(OSError, match="packed-refs"):
            build.of_checkout(tmp_path)


def test_a_program_from_an_archive_knows_its_commit(tmp_path: Path) -> None:
    """`git archive` writes it: a directory for each version needs no repository. So does a built wheel."""
    packed = subprocess.run(["git", "archive", "HEAD", "src"], cwd=ROOT, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(tmp_path, filter="data")
    code = "from petstore.ops import build; print(build.commit())"
    said = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == git(ROOT, "rev-parse", "HEAD")


def test_this_program_knows_its_commit() -> None:
    """The tests run from a checkout."""
    assert build.commit() == git(ROOT, "rev-parse", "HEAD")
