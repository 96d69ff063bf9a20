"""Reserved disk space beside the database, so that a key can be revoked on a full disk."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from petstore.storage.sqlite import files

BYTES = 4 << 20
# Free space needed before the reserve is made: it must not fill the disk itself.
_FREE_BYTES = 8 * BYTES


def keep(path: str) -> None:
    """Make the reserve of the database at `path` when it is missing and 32 MiB are free.

    Raises nothing: the next call tries again.
    """
    reserve = _of(path)
    try:
        if is_kept(path):
            return
        room = os.statvfs(reserve.parent)
        if room.f_bavail * room.f_frsize < _FREE_BYTES:
            return
        files.make(str(reserve), like=path)
        with reserve.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, BYTES)
    except OSError:
        with contextlib.suppress(OSError):
            give_up(path)


def is_kept(path: str) -> bool:
    """Whether the whole reserve exists."""
    reserve = _of(path)
    return reserve.exists() and reserve.stat().st_size >= BYTES


def give_up(path: str) -> bool:
    """Free the reserve; False when there was none."""
    kept = is_kept(path)
    _of(path).unlink(missing_ok=True)
    return kept


def _of(path: str) -> Path:
    return Path(f"{Path(path).resolve()}.reserve")
