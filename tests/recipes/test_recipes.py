"""The recipes of ARCHITECTURE.md are true: each is applied to a copy, and what it adds works there.

A recipe is `NAME.diff`, which touches just the files that the recipe names, and `NAME.py`, tests of what was
added. NEXT in the name of a migration, and in it, is the number after the newest. To mend a diff that no
longer applies: `git apply --3way`, then `git diff -U1`, with more lines where one fits two places.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.architecture.sources import ROOT, tracked
from tests.docs.documents import section, text_of

HERE = Path(__file__).parent
_CONTRACT = ("tests/api/test_document.py",)


class Recipe(NamedTuple):
    """A line under "To add". A new word's own files are those that it makes; all others count."""

    title: str  # the beginning of the line
    most_files: int
    tests: tuple[str, ...] = _CONTRACT  # that pass in the copy, beside NAME.py
    has_own: bool = False  # whether the files that it makes are not counted


_IMPORTS = "tests/architecture/test_imports.py"
_LENGTH = "tests/architecture/test_rules.py::test_no_source_file_is_longer_than_300_lines"
_JOURNAL = "tests/storage/contract/test_journal.py"
_WALK = "tests/console/test_walk.py"


def _placed(*modules: str) -> tuple[str, ...]:
    """Tests that these modules, which a recipe adds or changes, import what their places allow."""
    test = f"{_IMPORTS}::test_a_module_imports_only_what_its_place_allows"
    return tuple(f"{test}[petstore.{module}]" for module in modules)


# The tests that see an addition. What they say of all the rest they say in the suite.
RECIPES = {
    "member": Recipe("a member of an animal", 3),
    "limit": Recipe("a limit (a window)", 5),
    "page": Recipe("a page of the documentation", 3, ()),
    "noun": Recipe(
        "a word of the business",
        15,
        (
            *_placed("cli.suppliers", "console.suppliers", "core.suppliers", "transactions.suppliers"),
            *(f"{_IMPORTS}::test_nothing_imports_in_a_circle", _LENGTH),
            *("tests/docs/test_documents.py", "tests/cli/test_root.py::TestHelp"),
            "tests/docs/test_commands.py::test_commands_of_the_program_exist",
            "tests/cli/test_journal.py::test_the_walk_knows_every_command",
            "tests/cli/test_journal.py::test_each_change_by_a_command_has_one_entry",
            "tests/cli/test_db_copy.py::test_no_table_is_forgotten",
            "tests/cli/test_db_copy.py::TestCopied::test_every_row_of_every_table",
            f"{_WALK}::test_the_table_is_what_is_served",
            f"{_WALK}::test_a_lesser_role_is_refused[viewer]",
            f"{_WALK}::test_without_a_forms_token_nothing_changes[wrong]",
            f"{_JOURNAL}::test_the_walk_knows_every_method[postgres]",
            f"{_JOURNAL}::test_each_change_has_one_entry_and_nothing_else_has_any[postgres]",
        ),
        has_own=True,
    ),
    "operation": Recipe(
        "an operation",
        20,
        (
            *(*_CONTRACT, _LENGTH, *_placed("api.operations", "api.pets", "transactions.pets")),
            *("tests/api/test_walks.py", "tests/api/test_refusals.py"),
            "tests/docs/test_operations.py::test_every_metric_is_named",
            f"{_JOURNAL}::test_the_walk_knows_every_method[sqlite]",
            "-kcountPets or operation.py or every_ or success or document or architecture",
        ),
    ),
}


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


def diff_of(recipe: str) -> str:
    return numbered(text_of(HERE / f"{recipe}.diff"))


def touched(recipe: str) -> dict[str, bool]:
    """The files of a recipe's diff, and whether it makes them."""
    found = re.findall(r"^diff --git a/(\S+) .*\n(new file)?", diff_of(recipe), re.M)
    return {file: made != "" for file, made in found}


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


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_text_names_the_files(recipe: str) -> None:
    """Each file of the diff that counts, or its folder, stands in the recipe; its first sentence names no
    other."""
    to_add = section(text_of(ROOT / "ARCHITECTURE.md"), "To add")
    (text,) = re.findall(rf"^\* {re.escape(RECIPES[recipe].title)}: (.*?)(?=^\* |\Z)", to_add, re.M | re.S)
    first = re.split(r"\.\s", text)[0]
    named, needed = (
        set(re.findall(r"`((?:[\w-]+/)+[\w.-]*|[\w-]+\.(?:py|yaml|md))`", part)) for part in (text, first)
    )
    files = touched(recipe)
    counted = [file for file, made in files.items() if not (made and RECIPES[recipe].has_own)]
    assert {file for file in counted if not any(f"/{name}" in f"/{file}" for name in named)} == set()
    assert {name for name in needed if not any(f"/{name}" in f"/{file}" for file in files)} == set()
    most = RECIPES[recipe].most_files
    assert len(counted) <= most, f"{len(counted)} files, at most {most}: {', '.join(counted)}"


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_the_recipe_is_all_that_is_needed(recipe: str, tmp_path: Path) -> None:
    """The addition works, and so does what is near it. Correct recipe and diff together."""
    for path in tracked():
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy, follow_symlinks=False)
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):  # true for a file of the same age
            (copy.parent / "__pycache__").mkdir(exist_ok=True)
            shutil.copy2(compiled, copy.parent / "__pycache__")
    run(tmp_path, "git", "init", "-q")
    run(tmp_path, "git", "apply", "--recount", "-C1", "-", text=diff_of(recipe))
    run(tmp_path, "git", "add", "-A")
    pytest_alone = (sys.executable, "-m", "pytest", "-qx", "-n0", "--no-cov", "-mnot slow", "--timeout=170")
    run(tmp_path, *pytest_alone, f"tests/recipes/{recipe}.py", *RECIPES[recipe].tests)
