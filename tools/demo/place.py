"""The demo's database has a directory of its own, so that no other database is ever overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path

from petstore.core.errors import OperatorError
from petstore.storage.sqlite.lock import lock_for_serving

_MARK = "made-by-make-demo"
_DATABASES = ("petstore.db", "petstore-staging.db")  # the second one is made by tools/serve.py
_ANOTHER = "Name another directory: ARGS='--folder PATH'."


class Refused(Exception):
    """The place holds something else, or is in use."""


@contextmanager
def cleared(folder: Path) -> Iterator[Path]:
    """The path of a database to make in `folder`, held against servers; an older demo there is removed, with
    its staging.

    Raises Refused when the directory has a database that this did not make, or a server uses it.
    """
    mark = folder / _MARK
    try:
        if folder.exists() and any(folder.iterdir()) and not mark.exists():
            raise Refused(f"{folder} has files that `make demo` did not make. {_ANOTHER}")
        folder.mkdir(parents=True, exist_ok=True)
        mark.write_text("The files beside this one are made anew by `make demo`.\n", encoding="utf-8")
    except OSError as error:
        raise Refused(f"{folder}: {error.strerror}. {_ANOTHER}") from None
    with ExitStack() as held:
        try:
            for name in _DATABASES:
                held.enter_context(lock_for_serving(str(folder / name)))
        except OperatorError as error:
            raise Refused(str(error)) from None
        for name, suffix in product(_DATABASES, ("", "-wal", "-shm", ".reserve")):
            (folder / f"{name}{suffix}").unlink(missing_ok=True)
        yield folder / _DATABASES[0]
