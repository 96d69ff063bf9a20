"""What the parent of workers is given: what they are for, and how to prepare for new ones."""

from __future__ import annotations

from typing import Protocol

from petstore.serving.process import Report


class WorkerFailed(Exception):
    """A worker died twice within seconds: a third one would do the same."""


class Job(Protocol):
    """What the workers are for."""

    def work(self, number: int, report: Report) -> int:
        """All that one worker does, in its own process; reports once it serves. Its exit code."""
        ...

    def renew(self) -> None:
        """Prepare for new workers in the place of the present ones. Raises what speaks against it."""
        ...

    def explain(self, error: Exception) -> str:
        """What `renew` raised, in one line that shows no secret."""
        ...

    def before_stop(self) -> None:
        """Called in the parent before the workers are told to stop."""
        ...
