"""What is promised, checked from outside: every answer is noted, and counted by rules written once more."""

from __future__ import annotations

from bisect import bisect_left

import msgspec

from verification.simulation.virtual import EPOCH_MS

_MINUTE_MS, _DAY_MS = 60_000, 86_400_000


class Answer(msgspec.Struct, frozen=True):
    """One decision that a client was told."""

    at_ms: int
    allowed: bool
    banned: bool
    local: bool


class Admissions:
    """Every decision by account."""

    def __init__(self) -> None:
        self._answers: dict[int, list[Answer]] = {}
        self._limits: dict[int, tuple[int, ...]] = {}
        self.admitted = self.refused = self.local = 0

    def note(self, account: int, limits: tuple[int, ...], answer: Answer) -> None:
        self._answers.setdefault(account, []).append(answer)
        self._limits[account] = limits
        self.admitted += answer.allowed
        self.refused += not answer.allowed
        self.local += answer.local

    def over_and_under(self) -> tuple[int, int]:
        """Requests admitted beyond a limit, and requests refused while there was room."""
        over = under = 0
        for account, answers in self._answers.items():
            more, less = _recount(answers, *self._limits[account])
            over, under = over + more, under + less
        return over, under

    def worst_excess(self, processes: int, outages: list[tuple[float, float]]) -> tuple[float, float]:
        """The greatest excess over what is documented for an outage: of a minute, and of a day.

        As a share of the bound: above 1.0 it is broken. A process admits its share of a limit, at least one
        request, in any minute.
        """
        minute = day = 0.0
        for account, answers in self._answers.items():
            per_minute, per_day = self._limits[account]
            own = processes * max(1, per_minute // processes)
            allowed = sorted(answer.at_ms for answer in answers if answer.allowed)
            for opened_ms in _windows(answers, outages):
                first = bisect_left(allowed, opened_ms)
                used = bisect_left(allowed, opened_ms + _MINUTE_MS) - first
                minute = max(minute, (used - per_minute) / own)
            own = processes * max(1, per_day // processes)
            for number in {at_ms // _DAY_MS for at_ms in allowed}:
                used = sum(at_ms // _DAY_MS == number for at_ms in allowed)
                day = max(day, (used - per_day) / own)
        return max(minute, 0.0), max(day, 0.0)

    def greatest(self) -> float:
        """How many times its limit an account got within a minute, at most: any minute, so 2 is possible."""
        worst = 0.0
        for account, answers in self._answers.items():
            allowed = sorted(answer.at_ms for answer in answers if answer.allowed)
            for place, at_ms in enumerate(allowed):
                used = bisect_left(allowed, at_ms + _MINUTE_MS) - place
                worst = max(worst, used / self._limits[account][0])
        return worst


def _recount(answers: list[Answer], per_minute: int, per_day: int) -> tuple[int, int]:
    """Fixed windows that open at the whole second of a request, and UTC days."""
    over = under = used = day_used = 0
    opened_ms, day = -_MINUTE_MS, 0
    for answer in sorted(answers, key=lambda answer: (answer.at_ms, not answer.allowed)):
        if answer.banned:
            continue
        if answer.at_ms >= opened_ms + _MINUTE_MS:
            opened_ms, used = answer.at_ms // 1_000 * 1_000, 0
        if answer.at_ms // _DAY_MS != day:
            day, day_used = answer.at_ms // _DAY_MS, 0
        room = used < per_minute and day_used < per_day
        if answer.allowed:
            used, day_used = used + 1, day_used + 1
            over += not room
        else:
            under += room
    return over, under


def _windows(answers: list[Answer], outages: list[tuple[float, float]]) -> set[int]:
    """The minutes: as the shared counters open them, and one after another through each outage."""
    opened, last_ms = set(), -_MINUTE_MS
    for answer in sorted(answers, key=lambda answer: answer.at_ms):
        if not answer.local and not answer.banned and answer.at_ms >= last_ms + _MINUTE_MS:
            last_ms = answer.at_ms // 1_000 * 1_000
            opened.add(last_ms)
    for begins, lasts in outages:
        start_ms = EPOCH_MS + int(begins * 1_000)
        opened.update(range(start_ms, start_ms + int(lasts * 1_000), _MINUTE_MS))
    return opened


class Staleness:
    """Answers that did not show what they had to. `worst`: how many seconds ago that was acknowledged."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.shown = 0
        self.worst = 0.0

    def note(self, number: int, due: tuple[int, int], age: float) -> None:
        """`due`: what was acknowledged, and shown in somebody's answer, when the request arrived."""
        if number < due[0]:
            self.acknowledged += 1
            self.worst = max(self.worst, age)
        if number < due[1]:
            self.shown += 1
