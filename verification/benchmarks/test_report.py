"""A run's place in RESULTS.md."""

from __future__ import annotations

from verification.benchmarks.report import replaced


def test_a_run_replaces_the_section_of_its_groups() -> None:
    """Its own section, where that stands; another choice of groups is added at the end."""
    old = "# Results\n\n## Groups: all\n\nold\n\n## Versus\n\nkept\n"
    assert replaced(old, "Groups: all", "new") == old.replace("old", "new")
    assert replaced(old, "Versus", "new") == old.replace("kept", "new")
    assert replaced(old, "Groups: read", "new") == f"{old}\n## Groups: read\n\nnew\n"
