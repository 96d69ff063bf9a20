"""Tables on the terminal, in Markdown, so that they can be pasted into docs/scaling.md."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.simulation import model
from tests.simulation.model import Constants
from tests.simulation.scenarios import Omitted, Run
from tests.simulation.world import Result, Setup

_COLUMNS: dict[str, tuple[str, ...]] = {
    "admission": ("processes", "requests", "admitted", "refused", "over", "under", "as promised"),
    "outages": (
        "processes, outage",
        "requests",
        "decided locally",
        "failed",
        "refused too early",
        "most admitted in any 60 s ÷ limit",
        "excess ÷ bound, minute",
        "excess ÷ bound, day",
        "stale",
        "as promised",
    ),
    "staleness": (
        "processes",
        "requests",
        "stale pages",
        "stale callers",
        "behind an earlier answer",
        "oldest, s",
        "as promised",
    ),
    "caches": (
        "processes, pages, writes",
        "pages kept",
        "by the formula",
        "callers kept",
        "Valkey calls",
        "PostgreSQL queries",
        "Valkey's core",
        "PostgreSQL's cores",
        "ms an answer",
        "as promised",
    ),
}


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


def of_group(name: str, done: list[tuple[Run, Result]]) -> str:
    """One line for each run."""
    cells = {"admission": _admission, "outages": _outage, "staleness": _stale, "caches": _cache}[name]
    rows = [[run.name, *cells(run.setup, result), run.kept(result)] for run, result in done]
    return f"\n{name}\n\n" + markdown(_COLUMNS[name], rows)


def _admission(_: Setup, result: Result) -> list[Any]:
    return [result.requests, result.admitted, result.refused, result.over, result.under]


def _outage(_: Setup, result: Result) -> list[Any]:
    stale = result.stale_pages + result.stale_callers
    excess = [result.minute_excess, result.day_excess]
    decided = [result.requests, result.local, result.failed, result.under]
    return [*decided, result.greatest, *excess, stale]


def _stale(_: Setup, result: Result) -> list[Any]:
    stale = [result.stale_pages, result.stale_callers, result.regressed]
    return [result.requests, *stale, result.oldest_seconds]


def _cache(setup: Setup, result: Result) -> list[Any]:
    # While it writes, a writer's mark stands for a round trip, the statement and its commit.
    marked = 2.5 * setup.round_trip + setup.costs.write + setup.costs.fsync
    shares = model.zipf(setup.pages, setup.skew)
    expected = model.hits(shares, setup.requests / setup.processes, setup.writes, marked)
    loads = [result.valkey_calls, result.postgres_queries, result.valkey_load, result.postgres_load]
    return [result.page_hits, expected, result.caller_hits, *loads, result.milliseconds]


def of_omissions(rows: list[tuple[Omitted, Result, Result, bool]]) -> str:
    """What each step prevents."""
    head = ("step left out", "what is counted", "with it", "without it", "seen")
    cells = [
        [omitted.step, omitted.counts, getattr(kept, omitted.counts), getattr(lost, omitted.counts), was_seen]
        for omitted, kept, lost, was_seen in rows
    ]
    return "\nomissions\n\n" + markdown(head, cells)


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
    """Bytes and microseconds."""
    if group == "decisions":
        costs = [
            [cost.situation, cost.together, cost.microseconds, 1e6 / cost.microseconds]
            for cost in measured.costs
        ]
        head = ("calls", "together", "µs of Valkey's core", "a second, at most")
        title = f"\nValkey {measured.server}, {measured.bytes_each:.0f} bytes an account with a key\n\n"
        return title + markdown(head, costs)
    if group == "statements":
        costs = [[cost.statement, cost.server, cost.ours, cost.elapsed] for cost in measured.costs]
        head = ("statement", "µs of PostgreSQL", "µs of the worker", "µs in all")
        return f"\nPostgreSQL {measured.server}\n\n" + markdown(head, costs)
    sizes = [[size.table, size.rows, size.heap_bytes, size.index_bytes] for size in measured.sizes]
    pages = [[page.animals, page.page, page.microseconds, page.blocks] for page in measured.pages]
    return (
        f"\nPostgreSQL {measured.server}, {measured.copied_per_second:,.0f} animals a second by COPY\n\n"
        + markdown(("table", "rows", "bytes a row", "bytes of indexes a row"), sizes)
        + "\n"
        + markdown(("animals", "page", "µs", "blocks"), pages)
    )
