"""The recipes of ARCHITECTURE.md are true: each is applied to a copy, and what it adds works there.

A recipe is `NAME.diff`, which touches just the files that the recipe names, and `NAME.py`, tests of what was
added. NEXT in the name of a migration, and in it, is the number after the newest.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

HERE = Path(__file__).parent
# How many files a recipe may touch, beside a new word's own.
MOST_FILES = {"member": 3, "limit": 5, "page": 3}
_COPIED = ("src", "clients", "docs", "tests", "tools", "pyproject.toml", "README.md", "CHANGELOG.md")


def newest(database: str) -> int:
    """The number of a database's newest migration."""
    folder = ROOT / "src" / "petstore" / "storage" / database / "migrations"
    return max(int(file.name[:4]) for file in folder.glob("*.sql"))


def numbered(diff: str) -> str:
    """A diff with the numbers of its migrations."""
    parts = re.split(r"(?=^diff --git )", diff, flags=re.M)
    for database in ("sqlite", "postgres"):
        number = newest(database) + 1
        parts = [
            part.replace("NEXT_", f"{number:04}_").replace("oldest: NEXT", f"oldest: {number}")
            if f"storage/{database}/" in part
            else part
            for part in parts
        ]
    return "".join(parts)


def run(folder: Path, *command: str, text: str | None = None) -> None:
    """A command in the copy; its output fails the test."""
    ran = subprocess.run(
        command,
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join([str(folder / "src"), str(folder / "clients/python/src")])},
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout}{ran.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("recipe", MOST_FILES)
def test_the_recipe_is_all_that_is_needed(recipe: str, tmp_path: Path) -> None:
    """Its files alone are changed, and the addition works. Correct recipe and diff together."""
    diff = numbered((HERE / f"{recipe}.diff").read_text(encoding="utf-8"))
    assert diff.count("diff --git ") <= MOST_FILES[recipe]
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(
                ROOT / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("node_modules")
            )
        else:
            shutil.copy2(ROOT / name, tmp_path / name)
    run(tmp_path, "git", "apply", "--recount", "-", text=diff)
    pytest_alone = (sys.executable, "-m", "pytest", "-qx", "-n0", "--no-cov", "-pno:schemathesis")
    run(tmp_path, *pytest_alone, f"tests/recipes/{recipe}.py", "tests/api/test_document.py")
