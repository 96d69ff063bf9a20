"""The program's data files, such as SQL and pages: read once for each package, then kept in memory.

An upgrade may replace the files while the program runs, and its SQL must not meet the old code. So the parent
of the workers reads all files before it starts the first worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_COMPILED = "__pycache__"


class Resource:
    """A file or a folder in memory, as it was when it was read; modules are left out."""

    def __init__(self, entry: Traversable) -> None:
        self.name = entry.name
        self._content = entry.read_bytes() if entry.is_file() else None
        below = sorted(entry.iterdir(), key=lambda one: one.name) if self._content is None else []
        self._below = {
            one.name: Resource(one) for one in below if one.name != _COMPILED and not one.name.endswith(".py")
        }

    def is_dir(self) -> bool:
        return self._content is None

    def iterdir(self) -> Iterator[Resource]:
        return iter(self._below.values())

    def joinpath(self, name: str) -> Resource:
        """Raises KeyError."""
        return self._below[name]

    def read_bytes(self) -> bytes:
        return self._content or b""

    def read_text(self) -> str:
        return self.read_bytes().decode()


@cache
def files(package: str) -> Resource:
    """The folder of a package. Of the packages only the top one is imported."""
    top, *below = package.split(".")
    return Resource(resources.files(top).joinpath(*below))


def modules() -> list[str]:
    """The names of the program's modules. It imports none: some need a driver that may be missing."""
    paths = (path.relative_to(_ROOT.parent).with_suffix("") for path in _ROOT.rglob("*.py"))
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


def read_all() -> None:
    """Read the files of every package."""
    for folder in _ROOT.rglob("__init__.py"):
        files(".".join((_ROOT.name, *folder.parent.relative_to(_ROOT).parts)))


def fingerprint() -> frozenset[tuple[str, int, int]]:
    """The path, size and time of change (ns) of each file of the program on the disk."""
    found = set()
    for path in _ROOT.rglob("*"):
        if _COMPILED not in path.parts and path.is_file():
            status = path.stat()
            found.add((str(path.relative_to(_ROOT)), status.st_size, status.st_mtime_ns))
    return frozenset(found)
