"""The lines of a stock list as text, with bounds of their length and of a row's.

Suppliers' programs write UTF-8, UTF-16 with its mark or Windows-1252, and end lines as any system does.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from itertools import chain
from typing import Any, BinaryIO

from petstore.core.errors import OperatorError

LINE_BYTES_MAX = 65_536  # as of a request's body
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_WINDOWS = "cp1252"


class Lines:
    """The lines of a file as text, without a byte order mark. A row may go on over many lines, and has a
    bound: call `begin_row` before each.

    The first line that is not ASCII says whether the list is in UTF-8 or in Windows-1252 (`is_windows`).
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = io.BufferedReader(_Bytes(file), 2 * LINE_BYTES_MAX)
        self.number = 0
        self._row_at, self._row_bytes = 1, 0
        self._encoding = ""
        self._decided_at = 0

    @property
    def is_windows(self) -> bool:
        return self._encoding == _WINDOWS

    def sample(self) -> str:
        """The beginning of the list, at most LINE_BYTES_MAX bytes in whole lines, before one is read.

        Raises OperatorError for what is not text.
        """
        head = without_mark(self._file.peek(LINE_BYTES_MAX)[:LINE_BYTES_MAX])
        if b"\0" in head:
            raise OperatorError(
                "This is not a text file. Send the list as CSV or Excel (.xlsx). Nothing was stored."
            )
        whole = head[: head.rfind(b"\n") + 1] or head
        return whole.decode(_WINDOWS if not _is_utf8(whole) else "utf-8", "replace")

    def begin_row(self) -> None:
        self._row_at, self._row_bytes = self.number + 1, 0

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        line = self._file.readline(LINE_BYTES_MAX + 1)
        self.number += 1
        if self.number == 1:
            line = without_mark(line)
        if not line:
            raise StopIteration
        if len(line) > LINE_BYTES_MAX:
            raise OperatorError(
                f"Line {self.number} is longer than {LINE_BYTES_MAX:,} bytes; nothing was stored."
            )
        self._row_bytes += len(line)
        if self._row_bytes > LINE_BYTES_MAX:
            raise OperatorError(
                f"The row that begins in line {self._row_at} is longer than {LINE_BYTES_MAX:,} bytes: a"
                ' quotation mark (") in it is not closed. Nothing was stored.'
            )
        return line.decode() if line.isascii() else self._decode(line)

    def _decode(self, line: bytes) -> str:
        is_utf8 = _is_utf8(line)
        if not self._encoding:
            self._encoding, self._decided_at = ("utf-8" if is_utf8 else _WINDOWS), self.number
        elif is_utf8 == self.is_windows:
            names = ("UTF-8", "Windows-1252")
            raise OperatorError(
                f"Line {self._decided_at} is in {names[self.is_windows]}, line {self.number} is not; save the"
                " list in UTF-8. Nothing was stored."
            )
        try:
            return line.decode(self._encoding)
        except UnicodeDecodeError:
            raise OperatorError(
                f"Line {self.number} is neither UTF-8 nor Windows-1252; save the list in UTF-8. Nothing was"
                " stored."
            ) from None


class _Bytes(io.RawIOBase):
    """A file, in UTF-8 where it is in UTF-16, and with LF where its lines end with CR alone."""

    def __init__(self, file: BinaryIO) -> None:
        head = file.read(LINE_BYTES_MAX)
        pieces: Iterator[bytes] = chain([head], iter(lambda: file.read(LINE_BYTES_MAX), b""))
        if head.startswith(_UTF16_MARKS):
            pieces = _from_utf16(pieces)
            head = next(pieces, b"")
            pieces = chain([head], pieces)
        if b"\r" in head[:-1] and b"\n" not in head:
            pieces = (piece.replace(b"\r", b"\n") for piece in pieces)
        self._pieces = pieces
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        view = memoryview(into)
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = piece
        count = min(len(view), len(self._left))
        view[:count], self._left = self._left[:count], self._left[count:]
        return count


def _from_utf16(pieces: Iterator[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-16")()
    try:
        for piece in pieces:
            yield decoder.decode(piece).encode()
        decoder.decode(b"", final=True)
    except UnicodeError:
        raise OperatorError("The list is in broken UTF-16; save it in UTF-8. Nothing was stored.") from None


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def without_mark(first: bytes) -> bytes:
    """The first line of a file without its byte order mark. Raises OperatorError for a mark of UTF-16."""
    if first.startswith(_UTF16_MARKS):
        raise OperatorError("The list is in UTF-16; save it in UTF-8. Nothing was stored.")
    return first.removeprefix(codecs.BOM_UTF8)
