"""Mail of orders to three people, while services are killed and the mail server refuses at random.

Each order is in a mail to each of them, and in two at most. The services gather and repeat far sooner than
others; everything else is as it is sold. Every other seed is on PostgreSQL with two replicas.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter

from tests.support.mail import CLOSE, CONNECT, DATA, RCPT, MailServer, Said, serving_mail
from tests.support.report import Report
from verification.torture.changing import Writers, keys_of_accounts
from verification.torture.places import Place, changed_program, places

SECONDS = 60.0
_PEOPLE = ("anna", "otto", "zoe")
_WRITERS = 4
_REFUSING = 0.2
_KILLED_EVERY_SECONDS = 2.0
_END_SECONDS = 300.0
_TROUBLES = ("service", "background", "parent", "stop")
# By step, what a server says that takes no mail: it goes, is busy, or does not want this one yet.
_REFUSALS = {CONNECT: (CLOSE, "421 4.3.2 Closing"), RCPT: ("450 4.2.1 Later",), DATA: ("451 4.3.0 Busy",)}
_SOONER = (
    "from petstore.core import notifications, webhooks",
    "notifications.GATHERED_MS, notifications.SAID_MAX = 500, 1_000_000",
    "webhooks.REPETITIONS_MS = tuple(ms // 3_000 for ms in webhooks.REPETITIONS_MS)",
    "from petstore.transactions import notifications as taken",
    "taken.LEASE_MS = 15_000",
    "from petstore.background import notifier",
    "notifier._FIRST_PAUSE_SECONDS, notifier._PAUSE_MAX_SECONDS = 0.05, 0.5",
)
_ORDER = re.compile(r"^Order ([0-9]+) for ", re.M)


class Round:
    """One database, its people, and `server`, which takes their mail."""

    def __init__(self, place: Place, server: MailServer, report: Report, seed: int) -> None:
        self.server, self._place, self._report = server, place, report
        self._chance = random.Random(f"{seed} troubles")
        answers = random.Random(f"{seed} answers")
        # Asked in the server's thread alone.
        server.answer = lambda step, _: _said(answers, step)
        self._writers = Writers(place.ports, keys_of_accounts(place.url), _WRITERS, seed)
        for person in _PEOPLE:
            place.command("people", "add", person, "--role", "staff", "--email", f"{person}@example.com")

    def run(self, seconds: float, kinds: tuple[str, ...], every_seconds: float) -> None:
        """Let orders come for so long, then wait until all are told."""
        tended = self._place.troubles_now_and_then(kinds, every_seconds, self._chance, self._report.counts)
        ends = time.monotonic() + seconds
        with self._writers.at_work():
            while time.monotonic() < ends:
                next(tended)
        self._writers.close()
        ends = time.monotonic() + _END_SECONDS
        while any(self._placed() - told.keys() for told in self._sent().values()) and time.monotonic() < ends:
            next(tended)
        self._report.counts["orders"] += len(self._placed())
        self.judge()
        self._report.counts["mails"] += len(self.server.messages)

    def judge(self) -> None:
        """Report what a person was not told, or too often."""
        placed = self._placed()
        for person, told in self._sent().items():
            self._judge(person, told, placed)

    def _placed(self) -> set[object]:
        return {number for (number,) in self._place.rows("SELECT id FROM orders")}

    def _judge(self, person: str, told: Counter[object], placed: set[object]) -> None:
        if missing := placed - told.keys():
            self._report.fault(f"{self._place.url}: {person} was not told of {sorted(map(str, missing))[:3]}")
        if often := [number for number, count in told.items() if count > 2]:
            self._report.fault(f"{self._place.url}: {person} was told three times of {often[:3]}")
        self._report.counts["told twice"] += sum(count == 2 for count in told.values())

    def _sent(self) -> dict[str, Counter[object]]:
        """How many mails to each person name each order."""
        told: dict[str, Counter[object]] = {person: Counter() for person in _PEOPLE}
        for message in list(self.server.messages):
            text = message.get_body(("plain",))
            assert text is not None
            person = message["To"].addresses[0].username
            told[person].update(map(int, _ORDER.findall(text.get_content())))
        return told


def _said(chance: random.Random, step: str) -> Said:
    return chance.choice(_REFUSALS[step]) if chance.random() < _REFUSING else None


def play(
    place: Place,
    report: Report,
    seed: int,
    *,
    seconds: float = SECONDS,
    kinds: tuple[str, ...] = _TROUBLES,
    every_seconds: float = _KILLED_EVERY_SECONDS,
) -> Round:
    """One database; orders come for so long."""
    with serving_mail() as server:
        for replica in place.replicas:
            replica.program = changed_program(place.folder, *_SOONER)
            replica.settings |= {"smtp_url": server.url, "mail_from": "petstore@example.com"}
        place.start()
        round_ = Round(place, server, report, seed)
        round_.run(seconds, kinds, every_seconds)
    return round_


def run(report: Report, seed: int, seconds: float) -> None:
    """A round from each seed."""
    for number, place in places(report, seed, seconds):
        play(place, report, number)
