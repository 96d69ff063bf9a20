"""Neighbouring versions of the program, as real ones: a later one made up, an earlier one from history."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# With defaults, so that a program that does not know the column can add rows.
EXPAND = {
    "sqlite": "ALTER TABLE pets ADD COLUMN chip TEXT NOT NULL DEFAULT '';\n",
    "postgres": "ALTER TABLE pets ADD COLUMN chip text NOT NULL DEFAULT '';\n",
}


class Copy:
    """The current program in a directory of its own; `program` runs it."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "petstore"
        # With what is compiled, but for what is being written.
        shutil.copytree(ROOT / "src" / "petstore", self.package, ignore=shutil.ignore_patterns("*.pyc.*"))
        self.program = folder / "run"
        self.program.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(folder)!r})\n"
            "from petstore.cli.main import main\nmain()\n"
        )
        self.program.chmod(0o755)

    def add_step(self, *, shuts_out: bool = False) -> int:
        """Let it know one more step in each store, which adds a column; the number of SQLite's."""
        number = 0
        for store in ("postgres", "sqlite"):
            folder = self.package / "storage" / store / "migrations"
            last = max(folder.glob("[0-9]*.sql"))
            number = int(last.name[:4]) + 1
            oldest = str(number) if shuts_out else last.read_text().partition("\n")[0].split()[-1]
            (folder / f"{number:04}_made_up.sql").write_text(f"-- oldest: {oldest}\n{EXPAND[store]}")
        return number


def from_history(commit: str, folder: Path) -> Path:
    """The program of a commit, with the packages of its own lock; the file that runs it."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        raise LookupError(f"{commit} can't be had from the history: {packed.stderr.decode().strip()}")
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-x"], cwd=folder, input=packed.stdout, check=True)
    subprocess.run(["tools/environment", "scale"], cwd=folder, check=True)
    return folder / ".venv" / "bin" / "petstore"
