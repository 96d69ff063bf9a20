"""Keeps the tests of an `xdist_group` in one worker, and how a run ended.

xdist 3.8 says so at the end of an identifier, where pytest 9.2 no longer reads it: each test would go to any
worker, which sets up anew what the group shares (https://github.com/pytest-dev/pytest-xdist/issues/1386).
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.nodeid import NodeId


def keep_groups_together(config: pytest.Config, items: Iterable[pytest.Item]) -> None:
    """End the identifiers of a group's tests with `@` and its name, as xdist expects of a worker."""
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is not None and not item.nodeid.endswith(ending := f"@{mark.args[0]}"):
            item._id = NodeId.parse(item.nodeid + ending)


def keep_status(session: pytest.Session, exitstatus: int) -> None:
    """Keep the exit code beside pytest's list of failed tests, at the end: tools/again.py needs both."""
    if not hasattr(session.config, "workerinput"):
        assert session.config.cache is not None
        session.config.cache.set("petstore/exit_status", int(exitstatus))
