"""CSV for programs and spreadsheets: RFC 4180, UTF-8, lines end with CRLF.

A spreadsheet runs a cell that begins like a formula, and names come from outside. Such a text gets an
apostrophe in front, which `read_cell` takes off again: a file that is exported and imported keeps its texts.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import AsyncIterator, Iterable, Sequence

# A formula has any apostrophes in front here, so that `read_cell` undoes `safe_cell` for every text. The last
# four are the full-width forms of the first.
_LIKE_A_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")


def csv_bytes(rows: Iterable[Sequence[str | int | None]]) -> bytes:
    """The rows as lines of CSV, every text made safe; None is an empty cell. A heading is a row too."""
    lines = io.StringIO(newline="")
    writer = csv.writer(lines)
    for row in rows:
        writer.writerow([safe_cell(cell) if isinstance(cell, str) else cell for cell in row])
    return lines.getvalue().encode()


async def marked(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """CSV for a person: without its mark Excel reads UTF-8 in the code page of Windows, and saves that."""
    yield codecs.BOM_UTF8
    async for piece in pieces:
        yield piece


def safe_cell(text: str) -> str:
    """The text as no spreadsheet runs it."""
    return f"'{text}" if _LIKE_A_FORMULA.match(text) else text


def read_cell(text: str) -> str:
    """The text that `safe_cell` was given."""
    return text[1:] if text.startswith("'") and _LIKE_A_FORMULA.match(text) else text
