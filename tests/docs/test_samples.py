"""Every sample of the documents that the service shows, run in its language against a real server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.documents import ROOT, fences, text_of
from tests.docs.samples import GUIDE, LANGUAGES, SHOWN, play, samples
from tests.docs.sessions import matches
from tests.support.server import Server, running_server
from tools.servers.petstore import run
from tools.servers.ports import free_port

pytestmark = [
    pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("docs-samples"),
]  # fmt: skip

ROOT_IN_DOCUMENT = "http://127.0.0.1:8080"
KEY_IN_DOCUMENT = "pets_live_YourOwnKeyStandsHere"
ANIMALS = 230
BEYOND_DOUBLES = 9_007_199_254_740_993


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A database with more than two pages of animals, and a key that may do everything."""
    folder = tmp_path_factory.mktemp("store")
    settings = {"database_url": f"sqlite:///{folder}/petstore.db"}
    stock = folder / "stock.csv"
    animals = ["Rex,1", *(f"Animal {number},3" for number in range(2, ANIMALS)), f"Nemo,{BEYOND_DOUBLES}"]
    stock.write_text("\n".join(["name,categoryId", *animals]), encoding="utf-8")
    printed = ""
    for line in (
        "db migrate",
        f"pets import {stock}",
        "accounts add shop --plan business",
        "keys issue shop --access manage --json",
    ):
        done = run(*line.split(), settings=settings)
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    return folder / "petstore.db", json.loads(printed)["key"]


@pytest.fixture(scope="module", params=["by path", "by base address"])
def server(
    request: pytest.FixtureRequest, store: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server whose links are paths, or whole addresses."""
    folder = tmp_path_factory.mktemp("server")
    database, key = store
    shutil.copy(database, folder)
    port = free_port()
    base_url = f"http://127.0.0.1:{port}/v1" if request.param == "by base address" else None
    with running_server(folder, port=port, base_url=base_url) as running:
        running.key = key
        yield running


def filled(text: str, server: Server) -> str:
    """A document with this server's address and key, as its page shows the reader's own."""
    return text.replace(ROOT_IN_DOCUMENT, server.base_url).replace(KEY_IN_DOCUMENT, server.key)


@pytest.mark.parametrize("language", LANGUAGES)
def test_samples_do_what_the_guide_says(language: str, server: Server, tmp_path: Path) -> None:
    """Each ends well and prints what stands below it; each walk reaches every animal, whatever its links."""
    chosen = [sample for sample in samples(filled(text_of(GUIDE), server)) if sample.language == language]
    printed = play(chosen, tmp_path, {"BASE": f"{server.base_url}/v1", "KEY": server.key})
    for sample, lines in zip(chosen, printed, strict=True):
        if sample.printed is not None:
            assert matches(sample.printed, lines), (sample.line, lines)
        if "limit=100" in sample.code or "# all pages" in sample.code:
            assert sum(line.count("Animal ") for line in lines) >= ANIMALS - 10, sample.line


@pytest.mark.parametrize(
    ("document", "played"),
    [("guide.md", LANGUAGES), ("errors.md", LANGUAGES), ("quickstart.md", ("console",))],
)
def test_every_block_runs_or_says_that_it_does_not(document: str, played: tuple[str, ...]) -> None:
    """A language that nobody runs would hide a sample that is wrong. test_quickstart.py plays its own."""
    languages = {language for language, _ in fences(text_of(ROOT / "docs" / document))}
    assert languages <= {*played, *SHOWN}
