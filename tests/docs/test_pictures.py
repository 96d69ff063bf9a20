"""The pictures of the console show it as it is."""

from __future__ import annotations

import re

import pytest

from tests.docs.documents import ROOT, text_of
from tests.support.postgres import apart
from tools.pictures.manifest import FOLDER, MANIFEST, describe
from tools.pictures.scenes import SCENES, served_store

_MAX_BYTES = 80_000


def test_each_picture_is_used_and_small() -> None:
    """One of the documents beside it uses it, with a text for those who don't see it."""
    used = set()
    for document in FOLDER.parent.glob("*.md"):
        used |= set(re.findall(r"!\[[^\]]{10,}\]\(pictures/([a-z]+)\.webp\)", text_of(document)))
    assert used == {scene.name for scene in SCENES} == {path.stem for path in FOLDER.glob("*.webp")}
    assert all(path.stat().st_size < _MAX_BYTES for path in FOLDER.glob("*.webp"))


@pytest.mark.e2e
@pytest.mark.slow
def test_no_picture_is_old() -> None:
    """Headings, fields, columns, buttons and links of the pages are those that the pictures were made of.

    When this fails, look at the difference and run `make pictures`.
    """

    def described() -> str:
        with served_store() as (port, tokens):
            return describe(port, tokens)

    assert apart(described) == MANIFEST.read_text(encoding="utf-8"), f"make pictures, in {ROOT.name}"
