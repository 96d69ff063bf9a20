"""Who may import whom: the core knows no edge, edges do not know each other, two modules join them."""

from __future__ import annotations

import sys

import pytest

from tests.architecture.sources import CORE, EDGES, JOINING, Module, imports, modules

STANDARD = frozenset(sys.stdlib_module_names)

# area: (areas of this program, packages from outside) that it may import besides itself, the core, the
# standard library and msgspec.
ALLOWED: dict[str, tuple[set[str], set[str]]] = {
    "petstore": (set(), set()),
    "config": (set(), set()),
    "build": (set(), set()),
    "storage": (set(), {"apsw", "asyncpg"}),
    "limiter": (set(), {"libvalkey"}),
    "api": (set(), {"yaml"}),
    "web": ({"petstore"}, {"starlette"}),
    "ops": ({"petstore"}, {"starlette", "structlog", "prometheus_client"}),
    "opening": ({"config", "storage", "limiter"}, set()),
    "migrating": ({"config", "opening", "storage"}, set()),
    "starting": ({"config", "opening", "storage"}, set()),
    "counting": ({"config", "opening", "storage", "limiter"}, set()),
    "serving": ({"config", "asgi"}, {"granian", "structlog", "uvloop"}),
    "cli": (
        {"petstore", "build", "config", "opening", "migrating", "starting", "bootstrap", "ops", "serving"},
        {"click", "rich", "structlog"},
    ),
    "bootstrap": (
        {"petstore", "build", "config", "counting", "opening", "storage", "limiter", "api", "web", "ops"},
        {"starlette", "structlog"},
    ),
    "asgi": ({"config", "bootstrap", "api"}, {"structlog"}),
}


def test_every_area_has_its_row() -> None:
    """A new package needs a decision: add it to ALLOWED and to ARCHITECTURE.md."""
    areas = {module.area for module in modules()} - CORE
    assert areas == set(ALLOWED) == EDGES | JOINING


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_a_module_imports_only_what_its_place_allows(module: Module) -> None:
    """Edges -> core; core -> core; bootstrap -> everything but the command line."""
    own, outside = ALLOWED.get(module.area, (set(), set()))
    faults = []
    for name, line in imports(module):
        top, _, rest = name.partition(".")
        if top == "petstore":
            area = rest.partition(".")[0] or "petstore"
            if area in CORE or area == module.area or area in own:
                continue
            advice = (
                "the core knows no edge: take what you need as an argument, or as a Protocol of your own"
                if module.is_core
                else "edges meet in bootstrap.py only: let it hand the thing over"
            )
        elif top in STANDARD or top in {"msgspec", "__future__"} or top in outside:
            continue
        else:
            advice = "move the code to the package whose technology this is"
        faults.append(f"{module}:{line} imports {name}; {advice}.")
    assert faults == []


def test_nothing_imports_in_a_circle() -> None:
    """Cut it where one side only needs a Protocol: that belongs to the caller."""
    graph = {module.name: sorted({name for name, _ in imports(module)}) for module in modules()}
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        assert name not in path, "a circle of imports: " + " -> ".join([*path[path.index(name) :], name])
        if name in done or name not in graph:
            return
        for other in graph[name]:
            if other != name:
                visit(other, [*path, name])
        done.add(name)

    for name in graph:
        visit(name, [])


def test_the_program_does_not_know_its_tests() -> None:
    """No testing flag, no helper of the tests: what tests need is an argument of `bootstrap.build`."""
    faults = [
        f"{module}:{line} imports {name}"
        for module in modules()
        for name, line in imports(module)
        if name.partition(".")[0] in {"tests", "pytest", "hypothesis", "unittest"}
    ]
    assert faults == []
