"""Writes the lock files of the peers, or of those that are named, anew; peers/README.md has the command.

Every file is pinned by its checksum; no lock names the place that packages come from.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
_COMPILE = (
    "pip compile requirements.in --quiet --upgrade --universal --python-version 3.11 --fork-strategy fewest"
    " --generate-hashes --no-header --output-file requirements.lock"
)
_NPM = (
    "npm install --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund"
)


def _lock_python(folder: Path) -> None:
    subprocess.run([os.environ.get("UV", "uv"), *_COMPILE.split()], cwd=folder, check=True)


def _lock_node(folder: Path) -> None:
    lock = folder / "package-lock.json"
    lock.unlink(missing_ok=True)
    subprocess.run(_NPM.split(), cwd=folder, check=True)
    document = json.loads(lock.read_text(encoding="utf-8"))
    for package in document["packages"].values():
        package.pop("funding", None)  # addresses that installing has no use for
    lock.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Locks the peers that are named, or all of them."""
    wanted = set(sys.argv[1:])
    for folder in sorted(FOLDER.iterdir()):
        if wanted and folder.name not in wanted:
            continue
        if (folder / "requirements.in").exists():
            _lock_python(folder)
        elif (folder / "package.json").exists():
            _lock_node(folder)


if __name__ == "__main__":
    main()
