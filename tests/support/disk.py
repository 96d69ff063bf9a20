"""A disk that is watched and can fail: SQLite's default VFS with a hook before and after each operation.

The store knows nothing of it: while it is mounted, every connection that is opened goes through it.
"""

# ruff: noqa: N802  the names are those of SQLite's own interface

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import apsw

Operation = Literal["write", "sync", "truncate", "delete"]
# (operation, path, offset or size, data): called before the operation; what it raises is the disk's error.
Hook = Callable[[Operation, str, int, bytes], None]

_numbers = itertools.count(1)


def _ignore(_operation: Operation, _path: str, _offset: int, _data: bytes) -> None:
    """A disk in good order."""


class Disk:
    """The hooks of a mounted disk; change them at any time."""

    def __init__(self) -> None:
        self.before: Hook = _ignore
        self.after: Hook = _ignore
        self.read_only = False

    def fail(
        self,
        operation: Operation,
        error: type[apsw.Error] = apsw.IOError,
        *,
        suffix: str = "",
        times: int = 1,
    ) -> None:
        """Let the next operations of a kind, on files whose name ends so, fail that many times."""
        left = times

        def hook(happening: Operation, path: str, _offset: int, _data: bytes) -> None:
            nonlocal left
            if happening == operation and path.endswith(suffix) and left:
                left -= 1
                raise error(f"the disk of this test failed to {operation}")

        self.before = hook

    def heal(self) -> None:
        """Nothing fails any more."""
        self.before = _ignore


class _File(apsw.VFSFile):
    def __init__(self, base: str, disk: Disk, name: str | apsw.URIFilename | None, flags: list[int]) -> None:
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__(base, name, flags)

    def xLock(self, level: int) -> None:
        # A file that was opened for reading can't be locked for writing: SQLite tries that at the last close
        # and goes without it. Here the error would come out of close(), so it is told in another word.
        try:
            super().xLock(level)
        except apsw.IOError as error:
            raise apsw.BusyError(str(error)) from None

    def xWrite(self, data: bytes, offset: int) -> None:
        if self._disk.read_only:
            raise apsw.ReadOnlyError("the disk of this test is mounted read-only")
        self._disk.before("write", self._path, offset, data)
        super().xWrite(data, offset)
        self._disk.after("write", self._path, offset, data)

    def xTruncate(self, size: int) -> None:
        self._disk.before("truncate", self._path, size, b"")
        super().xTruncate(size)
        self._disk.after("truncate", self._path, size, b"")

    def xSync(self, flags: int) -> None:
        self._disk.before("sync", self._path, flags, b"")
        super().xSync(flags)
        self._disk.after("sync", self._path, flags, b"")


class _Vfs(apsw.VFS):
    def __init__(self, disk: Disk, name: str) -> None:
        self._disk = disk
        self._base = apsw.vfs_names()[0]
        super().__init__(name, self._base, makedefault=True)

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> _File:
        return _File(self._base, self._disk, name, flags)

    def xDelete(self, name: str, syncdir: bool) -> None:
        self._disk.before("delete", name, int(syncdir), b"")
        super().xDelete(name, syncdir)
        self._disk.after("delete", name, int(syncdir), b"")


@contextmanager
def mounted_disk() -> Iterator[Disk]:
    """Every connection opened in this block is on the yielded disk; close them before the block ends."""
    disk = Disk()
    vfs = _Vfs(disk, f"watched-{next(_numbers)}")
    try:
        yield disk
    finally:
        vfs.unregister()
