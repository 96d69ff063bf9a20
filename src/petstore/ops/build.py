"""The commit of this program: from commit.txt, which packing writes, or from the checkout."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

UNKNOWN_COMMIT = "unknown"
# `git archive` writes the commit into it (.gitattributes), and so does deploy/Dockerfile.
_NOTE = Path(__file__).parents[1] / "commit.txt"
_CHECKOUT = Path(__file__).parents[3]
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@cache
def commit() -> str:
    """The hash, or `unknown`. Read once: a checkout may move on under a program that runs."""
    try:
        return _hash(_NOTE.read_text(encoding="ascii")) or of_checkout(_CHECKOUT)
    except (OSError, ValueError):
        return UNKNOWN_COMMIT


def of_checkout(root: Path) -> str:
    """The commit that is checked out in a directory; `unknown` without a .git in it.

    Raises OSError and ValueError for one that can't be read.
    """
    git = root / ".git"
    if git.is_file():  # a worktree's or submodule's names the real one
        git = root / git.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
    if not git.is_dir():
        return UNKNOWN_COMMIT
    head = (git / "HEAD").read_text(encoding="utf-8")
    if not head.startswith("ref:"):
        return _hash(head) or UNKNOWN_COMMIT
    reference = head.removeprefix("ref:").strip()
    common = git / (git / "commondir").read_text().strip() if (git / "commondir").exists() else git
    for folder in (git, common):
        if (folder / reference).is_file():
            return _hash((folder / reference).read_text(encoding="ascii")) or UNKNOWN_COMMIT
    for line in (common / "packed-refs").read_text(encoding="utf-8").splitlines():
        if line.endswith(f" {reference}"):
            return _hash(line.partition(" ")[0]) or UNKNOWN_COMMIT
    return UNKNOWN_COMMIT


def _hash(text: str) -> str:
    """The text when it is a hash of git, else nothing."""
    return text.strip() if _HASH.fullmatch(text.strip()) else ""
