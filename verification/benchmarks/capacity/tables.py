"""Tables on the terminal, in Markdown, so that they can be pasted into docs/scaling.md."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from verification.benchmarks.capacity import model
from verification.benchmarks.capacity.model import Constants


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


_LOADS = (
    model.Load(1_000, 1, 100),
    model.Load(10_000, 10, 1_000),
    model.Load(50_000, 50, 5_000),
    model.Load(100_000, 100, 10_000),
    model.Load(500_000, 500, 50_000),
)
_STORES = (
    model.Store(1e6, 1e3, additions_a_day=1e3),
    model.Store(1e7, 1e4, additions_a_day=1e4),
    model.Store(1e8, 1e5, additions_a_day=1e5),
    model.Store(1e9, 1e6, additions_a_day=1e6),
)


def of_model() -> str:
    """What loads need, and what stores take, by the constants in model.py."""
    constants, each = Constants(), model.Bytes()
    needs = [(load, model.need(load, constants)) for load in _LOADS]
    loads = [
        [
            *(load.lists, load.additions, load.accounts, need.kept),
            *(need.workers, need.valkey, need.postgres, need.flusher),
        ]
        for load, need in needs
    ]
    sizes = [(store, model.gigabytes(store, each)) for store in _STORES]
    stores = [
        [store.animals, store.accounts, *size.values(), sum(size.values()) - size["Valkey"]]
        for store, size in sizes
    ]
    kinds = [f"{kind}, GB" for kind in sizes[0][1]]
    head = (
        "lists/s",
        "additions/s",
        "accounts/s",
        "pages kept",
        "workers",
        "Valkey's core",
        "PostgreSQL cores",
        "s to save a second",
    )
    return (
        "\nmodel\n\n"
        + markdown(head, loads)
        + "\n"
        + markdown(("animals", "accounts", *kinds, "PostgreSQL in all, GB"), stores)
    )


def of_measured(group: str, measured: Any) -> str:
    """A table for each list that was measured, after what is measured once."""
    values = msgspec.structs.asdict(measured)
    rows = {name: value for name, value in values.items() if isinstance(value, list)}
    once = "".join(f"{name}: {_text(value)}\n" for name, value in values.items() if name not in rows)
    tables = [
        markdown(heads(value[0].__struct_fields__), map(msgspec.structs.astuple, value))
        for value in rows.values()
    ]
    return "\n".join((f"\n{group}\n", once, *tables))
