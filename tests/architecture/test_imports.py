"""Who may import whom: the core knows no edge, edges do not know each other, wiring joins them."""

from __future__ import annotations

import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT, SOURCE, Module, imports, is_in, modules, tracked
from tests.docs.documents import text_of

STANDARD = frozenset(sys.stdlib_module_names)


def _name(area: str) -> str:
    """The version's module is `petstore` itself, the empty name."""
    return "" if area in {"__init__", "__version__"} else area


def _allowed() -> dict[str, tuple[set[str], set[str]]]:
    rows = tomllib.loads(text_of(Path(__file__).with_name("imports.toml")))
    return {
        _name(area): (set(map(_name, row.get("areas", ()))), set(row.get("outside", ())))
        for area, row in rows.items()
    }


# area: (areas of this program, packages from outside) that it may import.
ALLOWED = _allowed()


def area_of(name: str) -> str:
    """The longest area that a module of the program lies in."""
    return max((area for area in ALLOWED if area and is_in(name, area)), key=len, default="")


def may_import(importer: str, name: str) -> bool:
    """Whether a module may import another one of the program."""
    area = area_of(importer)
    if is_in(name, "core") or (area and is_in(name, area) and area_of(name) == area):
        return True
    return any(is_in(name, own) if own else name == "petstore" for own in ALLOWED[area][0])


def test_every_package_has_its_row() -> None:
    """A new package needs a decision: add it to imports.toml and to ARCHITECTURE.md."""
    names = {module.name for module in modules()}
    packages = {
        ".".join(path.parent.relative_to(SOURCE / "petstore").parts)
        for path in (SOURCE / "petstore").rglob("__init__.py")
        if path.parent.name != "migrations"
    }
    assert packages - set(ALLOWED) == {"core.limits", "core.lists"}
    assert {area for area in ALLOWED if area and f"petstore.{area}" not in names} == set()


def test_the_package_has_few_entries() -> None:
    """A reader sees the whole in one look: at most 18 entries below `petstore`."""
    root = SOURCE / "petstore"
    assert len({path.relative_to(root).parts[0] for path in tracked() if root in path.parents}) <= 18


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_a_module_imports_only_what_its_place_allows(module: Module) -> None:
    """Edges -> core; core -> core; wiring -> everything but the server and the command line."""
    outside = ALLOWED[area_of(module.name)][1]
    faults = []
    for name, line in imports(module):
        top = name.partition(".")[0]
        if top == "petstore":
            if may_import(module.name, name):
                continue
            advice = (
                "the core knows no edge: take what you need as an argument, or as a Protocol of your own"
                if module.is_core
                else "edges meet in wiring/ only: let it hand the thing over"
            )
        elif top in STANDARD or top in {"msgspec", "__future__"} or top in outside:
            continue
        else:
            advice = "move the code to the package whose technology this is"
        faults.append(f"{module}:{line} imports {name}; {advice}.")
    assert faults == []


def test_nothing_imports_in_a_circle() -> None:
    """Cut it where one side only needs a Protocol: that belongs to the caller."""
    assert circle({module.name: {name for name, _ in imports(module)} for module in modules()}) == []


def test_no_folder_imports_in_a_circle() -> None:
    """Arrows between folders go one way too. The parts of the core, and those of storage, count as one."""
    graph: dict[str, set[str]] = defaultdict(set)
    for module in modules():
        graph[folder_of(module.name)] |= {folder_of(name) for name, _ in imports(module)}
    assert len(graph) > 10
    assert circle(graph) == []


def folder_of(name: str) -> str:
    """The first part below `petstore`; for `api` and `limiter` the package."""
    parts = name.split(".")
    deep = len(parts) > 3 and parts[1] in {"api", "limiter"}
    return ".".join(parts[: 3 if deep else 2])


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """The names along a circle in a graph, or nothing."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done or name not in graph:
            return []
        for other in sorted(graph[name] - {name}):
            if found := visit(other, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in graph if (found := visit(name, []))), [])


FORBIDDEN = {
    "src": ("tests", "verification", "pytest", "hypothesis", "unittest"),
    "tests": ("verification",),
    "tools": ("verification",),
    "verification": ("tests",),
}
_IMPORTED = re.compile(r"^ *(?:from|import) ([\w.]+)(?: import (\w+))?", re.M)
# Campaigns share these with the suite; verification/conftest.py takes its rules.
SHARED = ("tests.support.", "tests.conftest.")


def test_program_tests_and_verification_do_not_know_each_other() -> None:
    """The program has no testing flag: what tests need is an argument of `wiring.service.build`. A test may
    change without a campaign, and a campaign without the suite: what both need stands in tests/support."""
    faults = []
    for path in tracked():
        folder = path.relative_to(ROOT).parts[0]
        text = text_of(path) if path.suffix == ".py" and folder in FORBIDDEN else ""
        for module, name in _IMPORTED.findall(text):
            is_shared = folder == "verification" and f"{module}.{name}.".startswith(SHARED)
            if module.partition(".")[0] in {*FORBIDDEN[folder], ""} and not is_shared:
                faults.append(f"{path.relative_to(ROOT)} imports {module}.{name}")
    assert faults == []
