"""Tests that aim at some code measure coverage, not those that run everything once more.

Tracing doubles the processor time of Python 3.11, here and in each process that a test starts. Of the tests
with such processes the marked ones measure: together they reach what only a process runs, as the parent.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import pytest
from coverage import Coverage

_UNMEASURED = ("slow", "browser", "hypothesis")
# Folders of tests about the repository's files, and of a campaign.
_UNMEASURED_FOLDERS = ("architecture", "deploy", "docs", "spec", "simulation")
_FOR_CHILDREN = "COVERAGE_PROCESS_CONFIG"
_P = ParamSpec("_P")
_T = TypeVar("_T")


def is_measured(item: pytest.Item) -> bool:
    """Whether coverage counts what this test runs."""
    if item.path.parent.name in _UNMEASURED_FOLDERS or any(map(item.get_closest_marker, _UNMEASURED)):
        return False
    return item.get_closest_marker("e2e") is None or item.get_closest_marker("measured") is not None


def leave_to_workers(config: pytest.Config) -> None:
    """Let a worker of xdist not measure from its interpreter's start: pytest-cov starts its measurement."""
    if config.getoption("numprocesses", None):
        os.environ.pop(_FOR_CHILDREN, None)


@contextmanager
def unmeasured() -> Iterator[None]:
    """Trace nothing meanwhile, and no process that starts meanwhile."""
    running = []
    while (coverage := Coverage.current()) is not None:  # in a worker pytest-cov starts two: one would go on
        coverage.stop()
        running.append(coverage)
    children = os.environ.pop(_FOR_CHILDREN, None)
    try:
        yield
    finally:
        for coverage in running[:1]:
            # It has patched this process: each start would do so once more.
            coverage.set_option("run:patch", [])
            coverage.start()
        if children is not None:
            os.environ[_FOR_CHILDREN] = children


def untraced(check: Callable[_P, _T]) -> Callable[_P, _T]:
    """Exempt what runs none of our code, such as a check of each answer: traced it takes up to three times as
    long. Other threads are traced on, as they would not be after `unmeasured`.

    No context manager: of a frame the tracer has to see the call and the return, or neither.
    """

    @wraps(check)
    def run(*given: _P.args, **named: _P.kwargs) -> _T:
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return check(*given, **named)
        finally:
            sys.settrace(tracer)

    return run
