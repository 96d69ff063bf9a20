"""Every relative link of every document leads to a file, and to a heading in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.documents import ROOT, anchors, documents, links, name_of, text_of


@pytest.mark.parametrize("document", documents(), ids=name_of)
def test_links_lead_somewhere(document: Path) -> None:
    """A reader who follows a link arrives. Addresses on the web are not asked."""
    lost = []
    for link in links(text_of(document)):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or not target.is_relative_to(ROOT):
            lost.append(f"{link}: there is no such file")
        elif anchor and anchor not in anchors(text_of(target)):
            lost.append(f"{link}: there is no such heading")
    assert lost == []


def test_every_document_is_in_an_index() -> None:
    """docs/README.md leads to every page of the documentation, decisions/README.md to every decision."""
    folder = ROOT / "docs"
    indexes = (folder / "README.md", folder / "decisions" / "README.md")
    reached = {
        (index.parent / link.partition("#")[0]).resolve()
        for index in indexes
        for link in links(text_of(index))
    }
    pages = {path.resolve() for path in folder.rglob("*.md")} - {indexes[0]}
    assert {name_of(path) for path in pages - reached} == set()
