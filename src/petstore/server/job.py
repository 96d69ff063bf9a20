"""What the parent of workers is given: what they are for, and how to prepare for new ones."""

from __future__ import annotations

from typing import Protocol

import msgspec

from petstore.server.process import Patience, Report


class Facts(msgspec.Struct):
    """What the parent has seen: workers that serve, unasked ends by cause, reloads by result."""

    workers: int = 0
    restarts: dict[str, int] = msgspec.field(default_factory=lambda: {"exit": 0, "signal": 0, "hung": 0})
    reloads: dict[str, int] = msgspec.field(default_factory=lambda: {"done": 0, "refused": 0, "failed": 0})


class WorkerFailed(Exception):
    """A worker died twice within seconds: a third one would do the same."""


class Job(Protocol):
    """What the workers are for."""

    def work(self, number: int, report: Report) -> int:
        """All that one worker does, in its own process; reports once it serves. Its exit code."""
        ...

    @property
    def patience(self) -> Patience:
        """With a worker that starts now."""
        ...

    def renew(self) -> None:
        """Prepare for new workers in the place of the present ones. Raises what speaks against it."""
        ...

    def explain(self, error: Exception) -> str:
        """What `renew` raised, in one line that shows no secret."""
        ...

    def observe(self, facts: Facts) -> None:
        """Called in the parent about once a second."""
        ...

    def before_stop(self) -> None:
        """Called in the parent before the workers are told to stop."""
        ...
