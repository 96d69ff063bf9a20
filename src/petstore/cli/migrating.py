"""What a migration did, told to people as it happens and kept for programs."""

from __future__ import annotations

from collections.abc import Callable


class MigrationLog:
    """Implements storage's MigrationObserver."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.backup: str | None = None
        self.steps: list[str] = []

    def backed_up(self, file: str) -> None:
        self.backup = file
        self._say(f"The database of before is kept as {file}.")

    def applied(self, step: str) -> None:
        self.steps.append(step)
        self._say(f"applied {step}")
