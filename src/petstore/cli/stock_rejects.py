"""The bad rows of a stock list: counted, the first ones shown, all of them kept in a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from petstore.cli.output import echo_err
from petstore.cli.stock_files import StockList
from petstore.core.stock import StockRow

_SHOWN_MAX = 100


class BadRows:
    """Use it in a `with`. `path` is the file, which appears or is replaced by `publish`; None for none."""

    def __init__(self, listed: StockList, path: Path | None) -> None:
        self._listed = listed
        self._path = path
        self._partial = None if path is None else path.with_name(f"{path.name}.partial")
        self._file: BinaryIO | None = None
        self._shown: list[tuple[int, str]] = []
        self._of_file = (0, 0, 0)
        self.count = 0

    def __enter__(self) -> Self:
        if self._partial is not None:
            self._file = self._partial.open("wb")
            self._file.write(self._listed.heading())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None and self._partial is not None:
            self._file.close()
            self._partial.unlink(missing_ok=True)

    def add(self, line: int, fault: str, raw: Sequence[str] | bytes) -> None:
        """A row that breaks a rule of the file."""
        self._note(line, fault)
        if self._file is not None:
            self._file.write(self._listed.reject(line, fault, raw))

    def add_row(self, row: StockRow, fault: str) -> None:
        """A row that the store can't carry out."""
        self._note(row.line, fault)
        if self._file is not None:
            self._file.write(self._listed.reject_row(row, fault))

    def _note(self, line: int, fault: str) -> None:
        self.count += 1
        if len(self._shown) < _SHOWN_MAX:
            self._shown.append((line, fault))

    def end_of_file(self) -> None:
        """What follows are the rows that a plan of the store rejects."""
        self._of_file = self.count, len(self._shown), self._file.tell() if self._file is not None else 0

    def plan_again(self) -> None:
        """Forget the rows of the last plan."""
        self.count, shown, size = self._of_file
        del self._shown[shown:]
        if self._file is not None:
            self._file.seek(size)
            self._file.truncate()

    def sync(self) -> None:
        """Bring the file to the disk, before the other rows are stored. Raises OSError."""
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())

    def publish(self) -> None:
        """Give the file its name."""
        if self._partial is not None and self._path is not None:
            self._partial.replace(self._path)

    def show(self) -> None:
        """Print the first bad rows, by their lines, and how many more there are."""
        for line, fault in sorted(self._shown):
            echo_err(f"line {line}: {fault}")
        if self.count > len(self._shown):
            echo_err(f"… and {self.count - len(self._shown):,} more.")
