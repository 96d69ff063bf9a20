"""Makes the files of a database for their owner alone, and checks the rights of this user to them."""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import stat
from pathlib import Path

from petstore.core.errors import ConfigurationError

_MODE = 0o600
_NAME_MAX_BYTES = 504  # SQLite's, less the end of its journal's name


def make(file: str, like: str | None = None) -> bool:
    """Make an empty file with mode 600; False when the file exists.

    A file that root makes gets the owner of `like`, if that exists, or of the directory: the service is not
    root and must be able to use it. Raises OSError.
    """
    path = Path(file)
    try:
        # Not by open(): closing the file would drop SQLite's locks on it in this process.
        os.mknod(path, stat.S_IFREG | _MODE)
    except FileExistsError:
        return False
    except OSError as error:
        error.filename = file  # mknod leaves it out
        raise
    path.chmod(_MODE)
    if os.geteuid() == 0:
        owner = (Path(like) if like and Path(like).exists() else path.parent).stat()
        with contextlib.suppress(OSError):  # in a container root may lack the right
            os.chown(path, owner.st_uid, owner.st_gid)
    return True


def remove(path: str, *suffixes: str) -> None:
    """Remove the files that are named by the path and these ends, of those that there are. Raises OSError."""
    for suffix in suffixes:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def close_to_others(file: str) -> str:
    """Give a database that every user of the machine may open, as an umask leaves it, and SQLite's files
    beside it mode 600, where this user owns them. A mode for a group stays.

    Returns the line for the operator; it is empty when nothing was changed.
    """
    closed = False
    for suffix in ("", "-wal", "-shm"):
        path = Path(f"{Path(file).resolve()}{suffix}")
        with contextlib.suppress(OSError):  # it may be missing, or its file system have no modes
            found = path.stat()
            if found.st_mode & stat.S_IRWXO and found.st_uid == os.geteuid():
                path.chmod(_MODE)
                closed = True
    return f"Other users of this machine could open {file}; its mode is 600 now." if closed else ""


def readable_by_others(file: str) -> bool:
    """Whether every user of the machine may read the file, and reach it in its directory."""
    path = Path(file).resolve()
    return bool(path.parent.stat().st_mode & stat.S_IXOTH and path.stat().st_mode & stat.S_IROTH)


def refuse_unwritable(file: str) -> None:
    """Raise ConfigurationError unless this user may write the database, its log and its directory.

    SQLite opens a read-only file without an error, and the first write would fail.
    """
    path = Path(file).resolve()
    if os.statvfs(path.parent).f_flag & os.ST_RDONLY:
        raise ConfigurationError(
            f"{path} is on a file system that is mounted read-only. Mount it for writing, or name another"
            " file with PETSTORE_DATABASE_URL."
        )
    for suffix in ("", "-wal", "-shm", ".lock"):
        _refuse(Path(f"{path}{suffix}"), os.R_OK | os.W_OK, "rw")
    _refuse(path.parent, os.R_OK | os.W_OK | os.X_OK, "rwx")


def refuse_name(path: Path) -> None:
    """Raise ConfigurationError for a name that SQLite can't be given."""
    whole = path.absolute()
    try:
        length = len(str(whole).encode())
    except UnicodeEncodeError:
        name = os.fsencode(whole).decode(errors="backslashreplace")
        raise ConfigurationError(f"The name {name} is not UTF-8; give the file another one.") from None
    if length > _NAME_MAX_BYTES:
        raise ConfigurationError(f"The name {whole} has {length} bytes; SQLite takes {_NAME_MAX_BYTES}.")


def refuse_unreadable(path: Path) -> None:
    """Raise ConfigurationError when this user may not read the existing database."""
    _refuse(path.resolve(), os.R_OK, "rw", "read")


def _refuse(path: Path, needed: int, modes: str, act: str = "written") -> None:
    if not path.exists() or os.access(path, needed):
        return
    owner, me = _name(path.stat().st_uid), _name(os.geteuid())
    named = shlex.quote(str(path))
    remedy = f"chmod u+{modes} {named}" if owner == me else f"chown {me} {named}, or run this as {owner}"
    raise ConfigurationError(
        f"{path} belongs to {owner} and can't be {act} by {me}. Correct its rights: {remedy}."
    )


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
