"""What documents say of the project is true: links, lengths, the map, rules, guarantees, requirements."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.architecture.sources import tracked
from tests.architecture.test_rules import FILE_LINES, FUNCTION_LINES
from tests.docs.documents import ROOT, anchors, documents, links, name_of, section, text_of
from tests.support.cases import every_case


@every_case("document", documents())
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


PAGES = {"README.md": 500, "docs/operations.md": 2_100, "docs/scaling.md": 900}
ALL = 20_000
DECISIONS = 14_000


def words(text: str) -> int:
    """Count words as `wc -w` does, the strokes of tables included."""
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


ARCHITECTURE = text_of(ROOT / "ARCHITECTURE.md")
PACKAGE = ROOT / "src" / "petstore"


COLUMNS = {
    "transactions": ("transactions",),
    "storage": ("storage/sqlite", "storage/postgres"),
    **{name: (name,) for name in ("api", "cli", "console")},
}


def test_the_grid_is_the_tree() -> None:
    """Each word of the core that another column has is in it, with all columns that have a file for it."""
    rows = re.findall(r"^\* ([a-z_, ]+): (.+)$", section(ARCHITECTURE, "The grid"), re.M)
    words = {path.stem for path in (PACKAGE / "core").rglob("*.py")} - {"__init__"}
    tree = {
        word: [
            name
            for name, folders in COLUMNS.items()
            if any((PACKAGE / folder / f"{word}.py").exists() for folder in folders)
        ]
        for word in words
    }
    told = [(word, columns.split(", ")) for words, columns in rows for word in words.split(", ")]
    assert sorted(told) == sorted((word, columns) for word, columns in tree.items() if columns)


def test_both_databases_have_the_same_words() -> None:
    """The grid needs one column for them."""
    words = {path.stem for path in (PACKAGE / "core").rglob("*.py")}
    sqlite, postgres = (
        words & {path.stem for path in (PACKAGE / folder).glob("*.py")} for folder in COLUMNS["storage"]
    )
    assert sqlite == postgres


def test_every_package_is_named_and_nothing_else_is() -> None:
    """Modules are not listed: their docstrings say what they hold."""
    found = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("__init__.py")}
    packages = {name for name in found if name != "." and not name.endswith("migrations")}
    named = re.findall(r"^\* `([\w/]+)/`: ", section(ARCHITECTURE, "The grid"), re.M)
    assert sorted(named) == sorted(packages)


def test_files_that_are_named_exist() -> None:
    """Each path in backquotes leads to a file or a directory: from the root, or from the package."""
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.py)`", ARCHITECTURE)) - {"migrations/"}
    assert len(named) > 30
    assert {path for path in named if not any((place / path).exists() for place in (ROOT, PACKAGE))} == set()


CONTRIBUTING = text_of(ROOT / "CONTRIBUTING.md")
PROJECT = tomllib.loads(text_of(ROOT / "pyproject.toml"))["tool"]


def test_the_sizes_are_those_that_tests_keep() -> None:
    """Lines of a file and of a function, and the branches that have to be covered."""
    text = " ".join(CONTRIBUTING.split())
    assert f"at most {FILE_LINES} lines and a function at most {FUNCTION_LINES}." in text
    assert f"At least {PROJECT['coverage']['report']['fail_under']} % of all branches" in text


def test_every_mark_is_named() -> None:
    """A test without its mark runs where it can't, or slows down what should be quick."""
    marks = {mark.partition(":")[0] for mark in PROJECT["pytest"]["markers"]}
    assert marks <= set(re.findall(r"`(\w+)`", section(CONTRIBUTING, "The rules for tests")))


_GUARANTEE = re.compile(r"^\* \*\*(I\d+)\*\*: ", re.M)
_NUMBER = re.compile(r"\bI\d+\b")


def test_every_guarantee_is_defined_and_cited_by_a_test() -> None:
    """No promise goes untested, and no test cites one that is not made."""
    cited = {number for path in (ROOT / "tests").rglob("*.py") for number in _NUMBER.findall(text_of(path))}
    text = section(text_of(ROOT / "docs" / "reliability.md"), "Guarantees")
    assert set(_GUARANTEE.findall(text)) == cited


_TABLE = Path(__file__).with_name("asvs.toml")
_NAMED = sorted({row["test"] for row in tomllib.loads(text_of(_TABLE))["requirement"]})


@every_case("named", _NAMED)
def test_each_test_that_it_names_exists(named: str) -> None:
    """A class or a function, in that file."""
    path, *names = named.split("::")
    body = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    for name in names:
        (found,) = [node for node in body if getattr(node, "name", "") == name]
        body = getattr(found, "body", [])


def test_the_page_leads_to_it() -> None:
    """SECURITY.md names the table, which has the requirements."""
    assert _TABLE.relative_to(ROOT).as_posix() in text_of(ROOT / "SECURITY.md")
    assert len(_NAMED) > 20


def test_each_choice_of_groups_stands_once() -> None:
    """A section has its command and commit."""
    text = text_of(ROOT / "verification" / "benchmarks" / "RESULTS.md")
    titles = re.findall(r"^## (.+)$", text, re.M)
    assert len(titles) == len(set(titles))
    runs = re.findall(r"^`python -m verification\.benchmarks[ .][^`]*` at commit [0-9a-f]{7,}", text, re.M)
    assert len(runs) == len(titles)
