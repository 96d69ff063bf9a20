"""The program's data files, such as SQL and pages: read once for each package, then kept in memory.

An upgrade may replace the files while the program runs, and its SQL must not meet the old code. So the parent
of the workers reads all files before it starts the first worker.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_COMPILED, _PACKAGE = "__pycache__", "__init__.py"


class Resource:
    """A file or a folder in memory, as it was when it was read; modules and packages in it are left out."""

    def __init__(self, entry: Traversable) -> None:
        self.name = entry.name
        self._content = entry.read_bytes() if entry.is_file() else None
        below = sorted(entry.iterdir(), key=lambda one: one.name) if self._content is None else []
        self._below = {one.name: Resource(one) for one in below if _is_data(one)}

    def iterdir(self) -> Iterator[Resource]:
        return iter(self._below.values())

    def joinpath(self, name: str) -> Resource:
        """Raises KeyError."""
        return self._below[name]

    def read_bytes(self) -> bytes:
        return self._content or b""

    def read_text(self) -> str:
        return self.read_bytes().decode()


def _is_data(entry: Traversable) -> bool:
    if entry.name.endswith(".py") or entry.name == _COMPILED:
        return False
    return entry.is_file() or not entry.joinpath(_PACKAGE).is_file()


@cache
def files(package: str) -> Resource:
    """The folder of a package. Of the packages only the top one is imported."""
    top, *below = package.split(".")
    return Resource(resources.files(top).joinpath(*below))


def modules() -> list[str]:
    """The names of the program's modules. It imports none: some need a driver that may be missing."""
    names = (".".join(path).removesuffix(".py") for path in _first_paths() if path[-1].endswith(".py"))
    return sorted(name.removesuffix(".__init__") for name in names)


def read_all() -> None:
    """Read the files of every package."""
    for *folders, name in _first_paths():
        if name == _PACKAGE:
            files(".".join(folders))


def fingerprint() -> frozenset[tuple[str, int, int]]:
    """The path, size and time of change (ns) of each file of the program on the disk."""
    found = (("/".join(path), _ROOT.parent.joinpath(*path).stat()) for path in _paths())
    return frozenset((path, status.st_size, status.st_mtime_ns) for path, status in found)


@cache
def _first_paths() -> list[tuple[str, ...]]:
    """The paths of the first walk: a later load takes up no file that came since, nor walks again."""
    return list(_paths())


def _paths() -> Iterator[tuple[str, ...]]:
    """The parts of each file's path. os.walk takes a third of the time of Path.rglob."""
    for folder, below, names in os.walk(_ROOT):
        below[:] = [name for name in below if name != _COMPILED]
        parts = Path(folder).relative_to(_ROOT.parent).parts
        for name in names:
            yield (*parts, name)
