"""A run's table, and its place in RESULTS.md."""

from __future__ import annotations

from verification.benchmarks.report import Row, replaced, table


def test_a_run_replaces_the_section_of_its_groups() -> None:
    """It replaces its own section, where that stands; another choice of groups is added at the end."""
    old = "# Results\n\n## Groups: all\n\nold\n\n## Versus\n\nkept\n"
    assert replaced(old, "Groups: all", "new") == old.replace("old", "new")
    assert replaced(old, "Versus", "new") == old.replace("kept", "new")
    assert replaced(old, "Groups: read", "new") == f"{old}\n## Groups: read\n\nnew\n"


def test_aims_are_signs() -> None:
    """They are so both ways."""
    rows = [Row("read", "list", 1, "requests/s", 0.7, "ceiling", ">= 0.65")]
    rows.append(Row("read", "list: p99", 1, "ms", 1.2, "ceiling", "<= 1.5"))
    lines = table(rows).splitlines()
    assert [line.split()[-1] for line in lines[1:]] == ["≥0.65", "≤1.5"]
