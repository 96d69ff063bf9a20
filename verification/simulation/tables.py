"""Results of the simulation as tables in Markdown."""

from __future__ import annotations

from verification.benchmarks.capacity.tables import heads, markdown
from verification.simulation.scenarios import Omitted, Run
from verification.simulation.world import Result

# The members of a Result that a group's table shows, with a head for what its lines are called.
_COLUMNS = {
    "admission": ("processes", "requests", "admitted", "refused", "over", "under"),
    "outages": (
        *("processes, outage", "requests", "local", "failed", "under", "greatest"),
        *("minute_excess", "day_excess", "stale_pages", "stale_callers"),
    ),
    "staleness": (*("processes", "requests", "stale_pages", "stale_callers", "regressed", "oldest_seconds"),),
    "caches": (
        *("processes, pages, writes", "page_hits", "page_hits_by_formula", "caller_hits", "valkey_calls"),
        *("postgres_queries", "valkey_load", "postgres_load", "milliseconds"),
    ),
}


def of_group(name: str, done: list[tuple[Run, Result]]) -> str:
    """One line for each run."""
    head, *members = _COLUMNS[name]
    rows = [
        [run.name, *(getattr(result, member) for member in members), run.kept(result)] for run, result in done
    ]
    return f"\n{name}\n\n" + markdown((head, *heads(members), "as promised"), rows)


def of_omissions(rows: list[tuple[Omitted, Result, Result, bool]]) -> str:
    """What each step prevents."""
    head = ("step left out", "what is counted", "with it", "without it", "seen")
    cells = [
        [omitted.step, omitted.counts, getattr(kept, omitted.counts), getattr(lost, omitted.counts), was_seen]
        for omitted, kept, lost, was_seen in rows
    ]
    return "\nomissions\n\n" + markdown(head, cells)
