"""Record what the program of this checkout says: python -m tools.answers FOLDER [PART…]

Run it in two checkouts with the same seed, and compare with `diff -r`: where behaviour is to stay, the
folders are equal byte for byte.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.answers import adapter, commands

_PARTS = ("outputs", "sqlite", "postgres", "valkey")
_ROOT = Path(__file__).parents[2]


def patched_source(folder: Path) -> None:
    """Copy the package into a folder, with a steered time for what runs inside Valkey."""
    package = folder / "petstore"
    shutil.copytree(_ROOT / "src" / "petstore", package, ignore=shutil.ignore_patterns("__pycache__"))
    for pattern, old, new in adapter.PATCHES:
        changed = 0
        for file in package.rglob(pattern):
            text, count = re.subn(old, new, file.read_text(encoding="utf-8"))
            if count:
                file.write_text(text, encoding="utf-8")
            changed += count
        if not changed:
            raise LookupError(f"Nothing in {pattern} matches {old}: correct PATCHES in adapter.py.")


def record_answers(folder: Path, name: str, seed: int, count: int) -> None:
    """In a process of its own; with Valkey, on a copy of the source."""
    with tempfile.TemporaryDirectory() as copy:
        environment = dict(os.environ)
        search = [str(_ROOT / "src"), str(_ROOT)]
        if name == "valkey":
            patched_source(Path(copy))
            search.insert(0, copy)
        environment["PYTHONPATH"] = os.pathsep.join(search)
        words = [str(folder), name, str(seed), str(count)]
        subprocess.run([sys.executable, "-m", "tools.answers.http", *words], env=environment, check=True)


def main() -> int:
    """Record; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.answers", description=__doc__)
    parser.add_argument("folder", type=Path, help="where to write one file for each part")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(_PARTS)} (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of the requests (default: 1)")
    parser.add_argument("--count", type=int, default=20_000, help="how many requests (default: 20,000)")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(_PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.parts or _PARTS:
        if name == "outputs":
            with adapter.fresh_database() as url:
                commands.record(folder, url)
        else:
            record_answers(folder, name, arguments.seed, arguments.count)
        sys.stdout.write(f"recorded {name}\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
