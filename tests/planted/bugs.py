"""Reads the planted bugs from the TOML files of this folder: a file for each area, a table for each bug."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
SOURCE = Path("src", "petstore")
CLIENT = Path("clients", "python", "src")


class Bug(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`text` stands once in `file` and is replaced by `planted`; then `test` fails.

    `file` is below src/petstore, or a file of the client, petstore_client/…. `broken`: what then goes wrong.
    """

    broken: str
    file: str
    text: str
    planted: str
    test: str

    def path(self, root: Path) -> Path:
        """The file in the tree at `root`."""
        return root / (CLIENT if self.file.startswith("petstore_client/") else SOURCE) / self.file

    def fault(self, root: Path) -> str | None:
        """Why it can't be planted in the tree at `root`; None when it can."""
        path = self.path(root)
        found = path.read_text(encoding="utf-8").count(self.text) if path.is_file() else 0
        if found == 1 and self.text != self.planted:
            return None
        return f"its text stands {found} times in {self.file}, not once: rewrite it for the code of today"

    def planted_in(self, root: Path) -> str:
        """The content of the file with the bug, for the tree at `root`."""
        return self.path(root).read_text(encoding="utf-8").replace(self.text, self.planted)


def load() -> dict[str, Bug]:
    """Every bug, by name."""
    bugs: dict[str, Bug] = {}
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        assert not tables.keys() & bugs.keys(), f"{path.name}: a name is used twice"
        bugs |= msgspec.convert(tables, dict[str, Bug])
    return bugs
