"""The commit of a program: from real checkouts, and from what `git archive` packs."""

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


def test_the_commit_of_a_checkout_is_as_git_says(tmp_path: Path) -> None:
    """It is of a branch in a file or packed (`git gc` moves all into one), of a worktree, whose
    branch is noted in the repository that it belongs to, and of a tag, say, which is not a branch."""
    checkout, other = tmp_path / "checkout", tmp_path / "other"
    checkout.mkdir()
    git(checkout, "init", "-q")
    for name in ("first", "second"):
        git(checkout, "commit", "-q", "--allow-empty", "-m", name)
    git(checkout, "worktree", "add", "-q", "-b", "other", str(other), "HEAD~1")
    first, second = git(other, "rev-parse", "HEAD"), git(checkout, "rev-parse", "HEAD")
    for change in ("status", "pack-refs --all"):
        git(checkout, *change.split())
        assert (build.of_checkout(checkout), build.of_checkout(other)) == (second, first)
    git(checkout, "checkout", "-q", "--detach", "HEAD~1")
    assert build.of_checkout(checkout) == first


def test_without_a_commit_it_is_unknown(tmp_path: Path) -> None:
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
