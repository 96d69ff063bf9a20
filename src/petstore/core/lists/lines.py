"""The lines of a stock list: UTF-8, with bounds of their length and of a row's."""

from __future__ import annotations

from typing import BinaryIO

from petstore.core.errors import OperatorError

LINE_BYTES_MAX = 65_536  # as of a request's body


class Lines:
    """The lines of a file as text, without a byte order mark. A row may go on over many lines, and has a
    bound: call `begin_row` before each."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.number = 0
        self._row_bytes = 0

    def begin_row(self) -> None:
        self._row_bytes = 0

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
                f"The row that goes on in line {self.number} is longer than {LINE_BYTES_MAX:,} bytes: a"
                ' quotation mark (") before it is not closed. Nothing was stored.'
            )
        try:
            return line.decode()
        except UnicodeDecodeError as error:
            raise OperatorError(
                f"Line {self.number} is not UTF-8 (byte {error.start + 1}); save the list in UTF-8. Nothing"
                " was stored."
            ) from None


def without_mark(first: bytes) -> bytes:
    """The first line of a file without its byte order mark. Raises OperatorError for that of UTF-16."""
    if first.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise OperatorError("The list is in UTF-16; save it in UTF-8. Nothing was stored.")
    return first.removeprefix(b"\xef\xbb\xbf")
