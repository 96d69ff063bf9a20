"""Each SQL statement written for one database alone stands there for a reason."""

from __future__ import annotations

from tests.architecture.statements import statements


def test_no_statement_is_written_for_both_databases() -> None:
    """What SQLite and PostgreSQL ask alike is written once: in transactions/."""
    postgres = statements("storage.postgres")
    pairs = {
        text: (place, postgres[text])
        for text, place in statements("storage.sqlite").items()
        if text in postgres
    }
    both = "\n".join(f"{one} and {other}: {text}" for text, (one, other) in pairs.items())
    assert not pairs, both
