"""What a campaign of many rounds has seen."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any


def lost(acknowledged: Mapping[str, int], kept: Collection[tuple[Any, ...]]) -> list[str]:
    """What of animals, as identifiers by name, is not `kept` as it was acknowledged, and what is twice."""
    found = dict[str, int](kept)
    faults = [
        f"{name} was acknowledged as {told}, and is {found.get(name)}"
        for name, told in acknowledged.items()
        if found.get(name) != told
    ]
    if len(found) != len(kept):
        faults.append(f"{len(kept) - len(found)} animals are there twice")
    return faults


class Report:
    """Counts, greatest numbers, longest times in seconds, and faults: none when every promise held."""

    def __init__(self, most_rounds: int | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self._most: dict[str, int] = {}
        self._longest: dict[str, float] = {}
        self._seed: int | None = None
        self._most_rounds = most_rounds

    def __str__(self) -> str:
        counted = [f"{count:,} {what}" for what, count in self.counts.items()]
        timed = [f"{what} at most {seconds:.2f} s" for what, seconds in self._longest.items()]
        greatest = [f"at most {count:,} {what}" for what, count in self._most.items()]
        return ", ".join([*counted, *greatest, *timed, f"{len(self.faults)} faults"])

    def rounds(self, seed: int, seconds: float) -> Iterator[int]:
        """One seed after another, until the time is over, or the number of rounds that was asked for."""
        ends = time.monotonic() + seconds
        last = None if self._most_rounds is None else seed + self._most_rounds
        while seed != last if last is not None else time.monotonic() < ends:
            self._seed = seed
            self.counts["rounds"] += 1
            yield seed
            seed += 1

    def rounds_in_folders(self, seed: int, seconds: float) -> Iterator[tuple[int, Path]]:
        """Rounds, each with a new folder, which ends with its round."""
        for number in self.rounds(seed, seconds):
            with tempfile.TemporaryDirectory(prefix="torture-") as folder:
                yield number, Path(folder)

    def fault(self, text: str) -> None:
        """Keep and print it, with the seed of its round."""
        self.faults.append(text if self._seed is None else f"seed {self._seed}, {text}")
        self.note(self.faults[-1])

    def note(self, text: str) -> None:
        """Print a line at once."""
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def most(self, what: str, count: int) -> None:
        """Keep the greatest."""
        self._most[what] = max(count, self._most.get(what, 0))

    def took(self, what: str, seconds: float) -> None:
        """Keep the longest."""
        self._longest[what] = max(seconds, self._longest.get(what, 0))
