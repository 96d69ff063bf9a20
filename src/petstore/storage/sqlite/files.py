"""The files of a database: made for their owner alone, whatever the umask says."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

_MODE = 0o600


def make(file: str, like: str | None = None) -> bool:
    """Make an empty file that its owner alone may read and write; False when there is one already.

    What root makes belongs to the owner of `like` when that exists, or else of the directory: the service,
    which is not root, has to work with it. Raises OSError.
    """
    path = Path(file).resolve()
    try:
        # Not by open(): to close a file of a database drops the locks that SQLite has on it in this process.
        os.mknod(path, stat.S_IFREG | _MODE)
    except FileExistsError:
        return False
    path.chmod(_MODE)
    if os.geteuid() == 0:
        owner = (Path(like) if like and Path(like).exists() else path.parent).stat()
        with contextlib.suppress(OSError):  # in a container root may lack the right
            os.chown(path, owner.st_uid, owner.st_gid)
    return True


def readable_by_others(file: str) -> bool:
    """Whether every user of the machine may read the file, and reach it in its directory."""
    path = Path(file).resolve()
    return bool(path.parent.stat().st_mode & stat.S_IXOTH and path.stat().st_mode & stat.S_IROTH)
