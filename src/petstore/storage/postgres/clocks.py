"""Whose clock decides what every process has to see alike: the server's, since those of machines may differ.

A clock that somebody steers is passed to the server instead.
"""

from __future__ import annotations

from petstore.core.clock import Clock, SystemClock


def steered_ms(clock: Clock) -> int | None:
    """The argument for `moment_ms`: nothing where the server's own clock is to be asked."""
    return None if isinstance(clock, SystemClock) else clock.now_ms()


def moment_ms(parameter: int) -> str:
    """SQL for the moment at which the statement began, in milliseconds."""
    return f"coalesce(${parameter}::bigint, (extract(epoch FROM statement_timestamp()) * 1000)::bigint)"
