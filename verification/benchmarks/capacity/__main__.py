"""Sizes of a Valkey and a PostgreSQL: the model, and measurements on real ones."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from verification.benchmarks.capacity import decisions, pages, rows, statements, stock, tables


def main() -> None:
    """Print a table for each group."""
    parser = argparse.ArgumentParser(prog="python -m verification.benchmarks.capacity", description=__doc__)
    groups = ("model", "decisions", "statements", "rows", "pages", "stock")
    parser.add_argument("groups", nargs="+", choices=groups)
    parser.add_argument(
        "--animals",
        type=int,
        nargs="+",
        default=[1_000_000],
        help="for pages; for rows the last number (default 1000000)",
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="for stock (default 1000000)")
    parser.add_argument(
        "--stores", nargs="+", default=["sqlite", "postgres"], help="for stock (default: both)"
    )
    arguments = parser.parse_args()
    measures: dict[str, Callable[[], Mapping[str, Any]]] = {
        "decisions": lambda: decisions.measure(60_000, 100_000),
        "statements": statements.measure,
        "stock": lambda: stock.measure(arguments.rows, arguments.stores),
        "pages": lambda: pages.measure(arguments.animals),
        "rows": lambda: rows.measure(arguments.animals[-1]),
    }
    for group in arguments.groups:
        print(tables.of_model() if group == "model" else tables.of_measured(group, measures[group]()))


if __name__ == "__main__":
    main()
