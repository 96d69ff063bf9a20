"""Writes stock lists: animals for an export, and the rows that an import rejects."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from petstore.cli.output import echo_err
from petstore.cli.spreadsheets import csv_bytes
from petstore.cli.stock_reading import StockList
from petstore.core.pets import Pet
from petstore.core.stock import MEMBERS, StockRow

_SHOWN_MAX = 100


class CsvPages:
    """Animals as CSV that CsvList reads."""

    def __init__(self, key_name: str | None) -> None:
        self._key_name = key_name

    def heading(self) -> bytes:
        return csv_bytes([[*([self._key_name] if self._key_name else []), *MEMBERS]])

    def page(self, pets: Sequence[Pet], keys: dict[int, str]) -> bytes:
        rows = [(pet.name, pet.category_id, pet.status.value) for pet in pets]
        if self._key_name is None:
            return csv_bytes(rows)
        return csv_bytes([(keys.get(pet.id), *row) for pet, row in zip(pets, rows, strict=True)])


class JsonPages:
    """Animals as lines that JsonList reads."""

    def __init__(self, key_name: str | None) -> None:
        self._key_name = key_name
        self._encode = msgspec.json.Encoder().encode_lines

    def heading(self) -> bytes:
        return b""

    def page(self, pets: Sequence[Pet], keys: dict[int, str]) -> bytes:
        return self._encode(
            [
                ({self._key_name: keys[pet.id]} if pet.id in keys else {})
                | {"name": pet.name, "categoryId": pet.category_id, "status": pet.status}
                for pet in pets
            ]
        )


PAGE_WRITERS: dict[str, type[CsvPages] | type[JsonPages]] = {"csv": CsvPages, "jsonl": JsonPages}


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
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def rejects_file(path: Path | None) -> Iterator[BinaryIO | None]:
    """`whole_file` that BadRows can shorten and sync: a device such as /dev/null gets the rows at the end."""
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


class BadRows:
    """The bad rows of a list: counted, the first ones shown, all of them kept in `file` unless it is None."""

    def __init__(self, listed: StockList, file: BinaryIO | None) -> None:
        self._listed = listed
        self._file = file
        self._shown: list[tuple[int, str]] = []
        self._of_file = (0, 0, 0)
        self.count = 0
        if file is not None:
            file.write(listed.heading())

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

    def show(self) -> None:
        """Print the first bad rows, by their lines, and how many more there are."""
        for line, fault in sorted(self._shown):
            echo_err(f"line {line}: {fault}")
        if self.count > len(self._shown):
            echo_err(f"… and {self.count - len(self._shown):,} more.")
