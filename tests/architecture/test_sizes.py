"""How large the program is: short files, and each SQL statement written for one database alone."""

from __future__ import annotations

from statistics import median

from tests.architecture.sources import modules
from tests.architecture.statements import statements

MEDIAN_LINES = 90


def test_the_median_file_is_short() -> None:
    """A file is read in one look. Split a long one at the seam between two subjects."""
    lines = median(len(module.text.splitlines()) for module in modules())
    assert lines <= MEDIAN_LINES, f"the median file has {lines} lines"


def test_no_statement_is_written_for_both_databases() -> None:
    """What SQLite and PostgreSQL ask alike is written once: in transactions/."""
    postgres = statements("storage.postgres")
    pairs = {
        text: (place, postgres[text])
        for text, place in statements("storage.sqlite").items()
        if text in postgres
    }
    told = "\n".join(f"{one} and {other}: {text}" for text, (one, other) in pairs.items())
    assert not pairs, told
