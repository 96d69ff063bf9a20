"""Where the demo's database is: a directory of its own, so that no other database is ever overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from petstore.core.errors import OperatorError
from petstore.storage.sqlite.lock import lock_for_serving

_MARK = "made-by-make-demo"
_DATABASE = "petstore.db"
_ANOTHER = "Name another directory: ARGS='--folder PATH'."


class Refused(Exception):
    """The place holds something else, or is in use."""


@contextmanager
def cleared(folder: Path) -> Iterator[Path]:
    """The path of a database to make in `folder`, held against servers; an older demo there is removed.

    Raises Refused when the directory has a database that this did not make, or a server uses it.
    """
    database, mark = folder / _DATABASE, folder / _MARK
    try:
        if folder.exists() and any(folder.iterdir()) and not mark.exists():
            raise Refused(f"{folder} has files that `make demo` did not make. {_ANOTHER}")
        folder.mkdir(parents=True, exist_ok=True)
        mark.write_text("The files beside this one are made anew by `make demo`.\n", encoding="utf-8")
    except OSError as error:
        raise Refused(f"{folder}: {error.strerror}. {_ANOTHER}") from None
    try:
        held = lock_for_serving(str(database))
    except OperatorError as error:
        raise Refused(str(error)) from None
    with held:
        for suffix in ("", "-wal", "-shm", ".reserve"):
            database.with_name(_DATABASE + suffix).unlink(missing_ok=True)
        yield database
