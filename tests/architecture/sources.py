"""The program's own source, each file parsed once: its modules, what each of them imports, its functions."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file of the program."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def is_core(self) -> bool:
        """Pure rules: a module below `petstore.core`."""
        return is_in(self.name, "core")

    @property
    def is_storage(self) -> bool:
        """Whether SQL may stand there."""
        return is_in(self.name, "storage") or is_in(self.name, "transactions")

    def __str__(self) -> str:
        return str(self.path.relative_to(ROOT))


def is_in(name: str, area: str) -> bool:
    """Whether a full name is that of an area, a path of names below `petstore`, or lies in it."""
    return f"{name}.".startswith(f"petstore.{area}." if area else "petstore.")


@cache
def modules() -> tuple[Module, ...]:
    """Every module of the package."""
    found = []
    for path in sorted((SOURCE / "petstore").rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, path))
    return tuple(found)


@cache
def names() -> frozenset[str]:
    return frozenset(module.name for module in modules())


@cache
def imports(module: Module) -> tuple[tuple[str, int], ...]:
    """What a module imports, wherever in it, as (full name of a module, line)."""
    return tuple(_imports(module))


def _imports(module: Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{module}:{node.lineno}: write the full name instead of a relative import"
            )
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield (inner if inner in names() else node.module), node.lineno


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function and method, inner ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@cache
def tracked() -> tuple[Path, ...]:
    """The files of the repository; where there is no repository, those of the folders that belong to it."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode == 0:
        paths = [ROOT / name for name in listing.stdout.split("\0") if name]
    else:
        folders = (ROOT / name for name in ("src", "tests", "docs", "tools", "verification"))
        paths = [*ROOT.glob("*.*"), *(path for folder in folders for path in folder.rglob("*"))]
    return tuple(path for path in paths if path.is_file() and "__pycache__" not in path.parts)
