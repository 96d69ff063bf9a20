"""What the parent takes from systemd's environment; tests/e2e has a real socket."""

from __future__ import annotations

import os

import pytest

from petstore.config.systemd import read_systemd


@pytest.mark.parametrize(
    ("microseconds", "pid", "seconds"),
    [("200000", None, 0.2), ("200000", os.getpid(), 0.2), ("200000", 1, 0), ("9" * 5_000, None, 0)],
    ids=["any process", "this process", "another process", "no number"],
)
def test_the_watchdog_of_this_process(
    monkeypatch: pytest.MonkeyPatch, microseconds: str, pid: int | None, seconds: float
) -> None:
    """WATCHDOG_PID names the process that it is for; a value that can't be parsed counts as missing."""
    monkeypatch.setenv("WATCHDOG_USEC", microseconds)
    if pid is not None:
        monkeypatch.setenv("WATCHDOG_PID", str(pid))
    assert read_systemd().watchdog_seconds == seconds
