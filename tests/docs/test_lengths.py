"""Documents stay short: a page answers one reader's question, reasons stand in decision records."""

from __future__ import annotations

import pytest

from tests.architecture.sources import tracked
from tests.docs.documents import ROOT, name_of, text_of

PAGES = {"README.md": 900, "docs/operations.md": 2_500, "docs/scaling.md": 2_000}
ALL = 20_000
DECISIONS = 14_000


def words(text: str) -> int:
    """As `wc -w` counts them, the strokes of tables included."""
    return len(text.split())


@pytest.mark.parametrize(("page", "most"), PAGES.items())
def test_a_page_is_short(page: str, most: int) -> None:
    """Cut what another page says, or what the reader did not ask."""
    assert words(text_of(ROOT / page)) <= most


def test_all_pages_together_are_short() -> None:
    """All that is tracked, without decisions, the changelog and tables of results, and each once."""
    pages = [path for path in tracked() if path.suffix == ".md" and not path.is_symlink()]
    counted = [
        path
        for path in pages
        if not {"decisions", "CHANGELOG.md", "RESULTS.md"} & set(path.relative_to(ROOT).parts)
    ]
    assert sum(words(text_of(path)) for path in counted) <= ALL, sorted(map(name_of, counted))


def test_all_decisions_together_are_short() -> None:
    """A record has reasons and figures; what the code says stands in the code alone."""
    records = [path for path in tracked() if path.parent == ROOT / "docs" / "decisions"]
    assert sum(words(text_of(path)) for path in records) <= DECISIONS, sorted(map(name_of, records))
