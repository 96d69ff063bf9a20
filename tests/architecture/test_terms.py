"""One term, one meaning: names that the source had and has no more, and forms that make a sentence hard."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache

from tests.architecture.sources import ROOT, functions, is_in, modules, tracked

# Former identifiers, by the area in which each is no name any more; "" is the whole program. Some named
# three to five things at once, others were words that no other project uses for the same thing.
FORMER: dict[str, set[str]] = {
    "": {
        *("Grant", "KeyStanding", "Counting", "SharedCounters", "SharedCounts", "shared_counters"),
        *("KeptPages", "kept_under", "make_reply", "TurnReader", "SnapshotSource", "standing_headers"),
        *("Ledger", "SharedLedger", "Seedbed", "LocalShare", "carry", "put_back", "is_carried"),
        *("Link", "PatientPublisher", "WaitingPublisher", "take_now", "fresh", "Tuning", "StoreOptions"),
        *("crowd", "_turn", "_Unit", "Family", "Root", "_spoke", "_mend", "_rested", "UNKNOWN"),
    },
    "api": {"kept", "complete"},
    "cli": {"say", "_Standing"},
    "core": {"no_pet", "no_key", "no_account", "name_taken", "key_in_use", "Kept", "CATALOGUE"},
    "limiter": {"ledger", "link", "seeds"},
    "ops": {"Connections"},
    "server": {"_Worker", "_tell"},
    "storage.postgres": {"alone"},
}
FORMER_FUNCTIONS = {"banned", "counted"}
FORMER_MODULES = {
    "api": {"head", "replies", "requests", "routes"},
    "cli": {"parent", "running", "values"},
    "limiter": {"seeds", "share"},
    "ops": {"journal"},
    "storage.postgres": {"versions"},
    "storage.sqlite": {"snapshot"},
    "wiring": {"counting"},
}


@cache
def identifiers() -> dict[str, dict[str, int]]:
    """The identifiers of each module, with the line of the first."""
    found: dict[str, dict[str, int]] = {}
    for module in modules():
        names = found.setdefault(module.name, {})
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
            if token.type == tokenize.NAME:
                names.setdefault(token.string, token.start[0])
    return found


@cache
def uses() -> dict[tuple[str, str], str]:
    """Where each former name is first used, by its area and name."""
    found: dict[tuple[str, str], str] = {}
    for module in modules():
        here = identifiers()[module.name]
        for area, names in FORMER.items():
            for name in names & set(here) if is_in(module.name, area) else ():
                found.setdefault((area, name), f"{module}:{here[name]}")
        for function in functions(module.tree):
            if function.name in FORMER_FUNCTIONS:
                found[("", function.name)] = f"{module}:{function.lineno}"
        for area, names in FORMER_MODULES.items():
            if is_in(module.name, area) and module.path.stem in names:
                found[(area, module.path.stem)] = str(module)
    return found


def test_no_former_name_is_used() -> None:
    """A reader who knows a term from one place knows it everywhere: take the name that the source uses."""
    assert uses() == {}


# Each hides who does what. Write subject, verb, object.
HARD = re.compile(
    r"\b(told|whoever|of before|that is none|so many [a-z]+ at most|as far as|is no (change|pattern)"
    r"|nobody (has|had) (asked|told))\b(?! …)",
    re.IGNORECASE,
)


def sentences() -> Iterator[tuple[str, str]]:
    """Comments and docstrings of the program, and the pages: where each is, and its text on one line."""
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".py" and name.startswith(("src/", "clients/")):
            text = path.read_text(encoding="utf-8")
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.COMMENT:
                    yield f"{name}:{token.start[0]}", token.string
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield (
                        f"{name}:{getattr(node, 'lineno', 1)}",
                        " ".join((ast.get_docstring(node) or "").split()),
                    )
        elif path.suffix == ".md" and "decisions" not in path.parts and path.name != "CHANGELOG.md":
            yield name, " ".join(path.read_text(encoding="utf-8").split())


def test_sentences_say_who_does_what() -> None:
    """Subject, verb, object; a reader understands it at once."""
    found = {f"{place}: {hit[0]}" for place, text in sentences() for hit in HARD.finditer(text)}
    assert not found, "\n".join(sorted(found))
