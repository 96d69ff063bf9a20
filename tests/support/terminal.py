"""A terminal for a process, whose output goes on to a file."""

from __future__ import annotations

import os
import pty
import threading
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def terminal(output: Path) -> Iterator[int]:
    """The descriptor for a process that ends within the block."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # lines end as they are written

    def copy() -> None:
        with output.open("ab", buffering=0) as file:
            try:
                while data := os.read(ours, 1 << 16):
                    file.write(data)
            except OSError:  # everybody has closed it
                pass

    reader = threading.Thread(target=copy)
    reader.start()
    try:
        yield theirs
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
