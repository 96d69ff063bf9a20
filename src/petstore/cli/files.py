"""Files that commands write: whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: Path | None) -> Iterator[BinaryIO | None]:
    """A file that appears, or replaces one, when the block ends without an error; None without a path."""
    if path is None:
        yield None
        return
    if _is_device(path):
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()
    # A unique name: two commands may write one file at once, and no existing file is overwritten.
    partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
    with _removed_at_the_end(partial):
        with _made(partial, path) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)


@contextlib.contextmanager
def _removed_at_the_end(partial: Path) -> Iterator[None]:
    """Remove `partial` at the end, also when a signal that is left to its default ends the program."""

    def end(number: int, _frame: object) -> None:
        partial.unlink(missing_ok=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    ending = [
        number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL
    ]
    for number in ending:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)
        partial.unlink(missing_ok=True)


def _made(partial: Path, path: Path) -> BinaryIO:
    """A new file. Raises OSError with the name that the caller knows."""
    try:
        return partial.open("xb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextlib.contextmanager
def rejects_file(path: Path | None) -> Iterator[BinaryIO | None]:
    """`whole_file` that can be shortened and synced: a device such as /dev/null gets the rows at the end."""
    if path is None or not _is_device(path):
        with whole_file(path) as kept:
            yield kept
        return
    with path.open("wb") as device, tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        shutil.copyfileobj(file, device)


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()
