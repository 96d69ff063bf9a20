"""What a campaign of many rounds has seen."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator


class Report:
    """Counts, longest times in seconds, and faults: none when every promise held."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self._longest: dict[str, float] = {}
        self._seed: int | None = None

    def __str__(self) -> str:
        counted = [f"{count:,} {what}" for what, count in self.counts.items()]
        timed = [f"{what} at most {seconds:.2f} s" for what, seconds in self._longest.items()]
        return ", ".join([*counted, *timed, f"{len(self.faults)} faults"])

    def rounds(self, seed: int, seconds: float) -> Iterator[int]:
        """One seed after another, until the time is over."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            self._seed = seed
            self.counts["rounds"] += 1
            yield seed
            seed += 1

    def fault(self, text: str) -> None:
        """Keep and print it, with the seed of its round."""
        self.faults.append(text if self._seed is None else f"seed {self._seed}, {text}")
        sys.stdout.write(f"{self.faults[-1]}\n")
        sys.stdout.flush()

    def took(self, what: str, seconds: float) -> None:
        """Keep the longest."""
        self._longest[what] = max(seconds, self._longest.get(what, 0))
