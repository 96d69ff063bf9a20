"""The protocol between the supervisor and the service: work, timeouts, reload."""

from __future__ import annotations

from typing import Protocol

from petstore.ops.supervision import SupervisorMetrics
from petstore.server.process import ReportPipe, Timeouts


class WorkerFailed(Exception):
    """The last worker died twice within seconds; a third start would fail in the same way."""


class SupervisedService(Protocol):
    """Implemented by parent.ParentService; each method but `work` runs in the parent."""

    @property
    def has_background(self) -> bool:
        """Whether a process with the number BACKGROUND carries out jobs."""

    def after_fork(self) -> None:
        """Called once, when the first workers are forked. Any exception ends the service."""

    def work(self, number: int, report: ReportPipe) -> int:
        """Run worker `number` in its own process, and report when it serves. Returns the exit code."""

    @property
    def timeouts(self) -> Timeouts:
        """The timeouts of a worker that starts now."""

    def renew(self) -> None:
        """Load the settings for new workers. Any exception keeps the current workers."""

    def explain(self, error: Exception) -> str:
        """One line, without secrets, for an exception of `renew`."""

    def observe(self, metrics: SupervisorMetrics) -> None:
        """Called about once a second."""

    def before_stop(self) -> None:
        """Called before the workers get the signal to stop."""
