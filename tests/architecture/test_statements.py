"""Each SQL statement written for one database alone stands there for a reason."""

from __future__ import annotations

import ast
import re

from tests.architecture.sources import Module, is_in, modules

_STATEMENT = re.compile(r"(SELECT|INSERT|UPDATE|DELETE)\s")
_PLACEHOLDER = re.compile(r"\?\d*|\$\d+")


def statements(area: str) -> dict[str, str]:
    """Each statement of an area, its placeholders all alike, with the place where it is written."""
    found: dict[str, str] = {}
    for module in modules():
        if is_in(module.name, area):
            for text, line in _texts(module):
                if _STATEMENT.match(text) and "FROM {}" not in text:
                    found.setdefault(_PLACEHOLDER.sub("?", " ".join(text.split())), f"{module}:{line}")
    return found


def _texts(module: Module) -> list[tuple[str, int]]:
    """String expressions; a part that names a constant of the module is replaced by its text."""
    constants: dict[str, str] = {}
    found = []
    inner = {id(part) for node in ast.walk(module.tree) for part in _parts(node)}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constants[node.targets[0].id] = _render(node.value, constants)
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in inner:
            found.append((_render(node, constants), node.lineno))
    return found


def _parts(node: ast.AST) -> list[ast.expr]:
    return node.values if isinstance(node, ast.JoinedStr) else []


def _render(node: ast.expr, constants: dict[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_render(part, constants) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _render(node.value, constants)
    if isinstance(node, ast.Name):
        return constants.get(node.id, "{}")
    return "{}"


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
