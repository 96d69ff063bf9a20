"""Tables on the terminal, in Markdown, so that they can be pasted into docs/scaling.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from verification.benchmarks.capacity import model


def markdown(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Columns in line."""
    cells = [list(head), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1_000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def heads(members: Iterable[str]) -> list[str]:
    return [member.replace("_", " ") for member in members]


_LOADS = [model.Load(lists, lists / 1_000, lists / 10) for lists in (1e3, 1e4, 5e4, 1e5, 5e5)]
_STORES = [model.Store(1_000 * count, count, additions_a_day=count) for count in (1e3, 1e4, 1e5, 1e6)]


def of_model() -> str:
    """What loads need, and what stores take, by the constants in model.py."""
    loads = [
        [load.lists, load.additions, load.accounts, *msgspec.structs.astuple(model.need(load))]
        for load in _LOADS
    ]
    sizes = [(store, model.gigabytes(store)) for store in _STORES]
    stores = [
        [store.animals, store.accounts, *size.values(), sum(size.values()) - size["Valkey"]]
        for store, size in sizes
    ]
    kinds = [f"{kind}, GB" for kind in sizes[0][1]]
    head = (
        *("lists/s", "additions/s", "accounts/s", "pages kept"),
        *("workers", "Valkey's core", "PostgreSQL cores", "s to save a second"),
    )
    tables = markdown(head, loads), markdown(("animals", "accounts", *kinds, "PostgreSQL in all, GB"), stores)
    return "\nmodel\n\n" + "\n".join(tables)


def of_measured(group: str, measured: Mapping[str, Any]) -> str:
    """What is measured once, and a table for each list of structs."""
    parts = [f"\n{group}\n"]
    for name, value in measured.items():
        if isinstance(value, list):
            parts.append(
                "\n" + markdown(heads(value[0].__struct_fields__), map(msgspec.structs.astuple, value))
            )
        else:
            parts.append(f"{name}: {_text(value)}")
    return "\n".join(parts)
