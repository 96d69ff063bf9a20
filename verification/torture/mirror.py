"""Mirrors: clients that only follow `GET /v1/events` while eight writers change animals and orders, lists are
imported, and services, PostgreSQL and imports are killed. All are told one sequence, and end with what the
lists show. Every other seed is on PostgreSQL with two replicas, every fourth begins with an older program.
"""

from __future__ import annotations

import http.client
import random
import subprocess
import threading
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from tests.support.imports import start_import
from tests.support.loops import working
from tests.support.machine import short_folder
from tests.support.programs import ROOT, from_history
from tests.support.report import Report
from tests.support.waiting import pause
from tools.servers.petstore import PROGRAM
from verification.torture.changing import ACCOUNTS, Writers, keys_of_accounts
from verification.torture.following import Follower, deviations, differences
from verification.torture.meeting import Staff
from verification.torture.places import Cluster, Place, on_a_file, on_postgres

_TROUBLES = 14
_WRITERS = 8
_ROWS_MAX = 10_000
_SKUS = 15_000  # that a list draws from
# What the first events need: programs before it wrote the journal already.
_FIRST_STEP = "src/petstore/storage/postgres/migrations/0011_data_set.sql"
_SHOWN = 5


class _Imports:
    """Lists that commands import one after another; every third command is killed."""

    def __init__(self, place: Place, chance: random.Random, rows: int) -> None:
        self.rows = 0  # of lists that came to their end
        self.killed = 0
        self._place = place
        self._chance = chance
        self._most = rows

    def work(self, over: threading.Event) -> None:
        while not over.is_set():
            self._import()
            over.wait(self._chance.uniform(1, 4))

    def _import(self) -> None:
        chance = self._chance
        path = self._place.folder / "stock.csv"
        numbers = chance.sample(range(_SKUS), int(self._most * chance.uniform(0.02, 1) ** 2))
        rows = [f"K{n},Animal {chance.random()},{n % 9},available\n" for n in numbers]
        path.write_text("sku,name,categoryId,status\n" + "".join(rows))
        importing = start_import(path, self._place.url)
        try:
            is_done = importing.wait(chance.uniform(0.3, 3) if chance.random() < 0.33 else 120) == 0
            self.rows += len(rows) if is_done else 0
        except subprocess.TimeoutExpired:
            importing.kill()
            importing.wait()
            self.killed += 1


class _Round:
    """One database, its writers and its followers."""

    def __init__(self, place: Place, seed: int, writers: int, rows: int) -> None:
        self.place = place
        self.seed = seed
        self.faults: list[str] = []
        keys = keys_of_accounts(place.url)
        ports = place.ports
        self.writers = Writers(ports, keys, writers, seed)
        self.imports = _Imports(place, self.chance("imports"), rows)
        self.all = [
            Follower("one", ports[:1], keys[0], self.chance("one")),
            Follower("the other", ports[-1:], keys[0], self.chance("other"), pages=(60, 100)),
            Follower("forgetful", ports, keys[0], self.chance("forget"), pages=(1, 100), forgets=True),
        ]
        self.own = [
            Follower(f"orders {n}", ports, keys[n], self.chance(f"own {n}"), types="order.*")
            for n in range(ACCOUNTS)
        ]
        self.late = Follower("late", ports, keys[1], self.chance("late"), pages=(1, 100), types="pet.*")

    def chance(self, what: str) -> random.Random:
        return random.Random(f"{self.seed} {what}")

    def run(self, troubles: int, kinds: list[str], staff: bool) -> list[str]:
        """What happened to the place."""
        chance, happened = self.chance("troubles"), []
        with ExitStack() as stack:
            stack.enter_context(working(*(follower.follow for follower in (*self.all, *self.own))))
            stack.enter_context(self.writers.at_work())
            stack.enter_context(working(self.imports.work))
            if staff:
                stack.enter_context(working(self._send_lists))
            for number in range(troubles):
                self._await_changes(chance.randint(20, 150))
                if number == troubles // 2:
                    self.late.start_anew()
                    stack.enter_context(working(self.late.follow))
                pause(chance.uniform(0, 0.5))
                happened.append(chance.choice(kinds))
                self.place.trouble(happened[-1], chance)
            self._await_changes(20)
        return happened

    def _await_changes(self, count: int) -> None:
        enough = self.writers.changes.total() + count
        for _ in range(6_000):
            if self.writers.changes.total() >= enough:
                return
            self.place.tend()
            pause(0.02)
        self.faults.append("the writers get no further")

    def _send_lists(self, over: threading.Event) -> None:
        """Send lists at the console, for the background process; again where a request was not answered."""
        staff = None
        while not over.is_set():
            try:
                staff = staff or Staff(self.place.command, self.place.ports[0])
                staff.send(self.place.ports[0])
                staff.store(self.place.ports[-1])
                self.imports.rows += 3_000
            except (OSError, http.client.HTTPException, AssertionError, RuntimeError, StopIteration):
                pause(0.5)

    def check(self) -> None:
        """Compare the events that arrived with what is there, once nobody changes anything."""
        last_pet = self.writers.close()
        for follower in [*self.all, self.late]:
            follower.finish(last_pet)
        for number, follower in enumerate(self.own):
            follower.finish(self.writers.last_order(number))
        first = self.all[0]
        pets = first.list("/v1/pets?limit=100")
        for follower in [*self.all, self.late]:
            self.faults += differences(follower, "pet", pets)
        for follower in self.all[1:]:
            self.faults += deviations(first, follower)
        self.faults += deviations(first, self.own[0], "order.")
        for number, follower in enumerate(self.own):
            self._check_orders(number, follower)
        self._check_acknowledged()
        self._check_entries()
        for follower in [*self.all, *self.own, self.late]:
            self.faults += [f"{follower.name}: {fault}" for fault in follower.faults + follower.mirror.faults]
        self.faults += self.writers.faults

    def _check_orders(self, number: int, follower: Follower) -> None:
        """The account's own, all of them, and nobody else's."""
        orders = follower.list("/v1/store/orders?limit=100")
        self.faults += differences(follower, "order", orders)
        if strange := {event["type"] for event in follower.seen if not event["type"].startswith("order.")}:
            self.faults.append(f"{follower.name} was told {strange}")
        if lost := self.writers.orders[number] - {order["id"] for order in orders}:
            self.faults.append(f"acknowledged orders of account {number} are not there: {sorted(lost)[:5]}")

    def _check_acknowledged(self) -> None:
        told = self.all[0].told
        for kind, numbers in (("created", self.writers.added), ("deleted", self.writers.removed)):
            if untold := [number for number in numbers if (f"pet.{kind}", number) not in told]:
                self.faults.append(f"{len(untold)} acknowledged and not told as {kind}: {untold[:5]}")

    def _check_entries(self) -> None:
        """Each entry of an animal is one event; the animals of another account's orders are too."""
        kept = {number for (number,) in self.place.rows("SELECT id FROM journal WHERE subject = 'pet'")}
        told = {
            int(event["id"].rpartition("_")[2])
            for event in self.all[0].seen
            if event["type"].startswith("pet.")
        }
        if kept != told:
            self.faults.append(
                f"{len(kept - told)} entries were not told: {sorted(kept - told)[:5]};"  # type: ignore[type-var]
                f" told without an entry: {sorted(told - kept)[:5]}"
            )


def play(
    place: Place,
    report: Report,
    seed: int,
    *,
    troubles: int,
    writers: int = _WRITERS,
    rows: int = _ROWS_MAX,
    staff: bool = False,
    kinds: tuple[str, ...] = (),
) -> None:
    """One database from its first animal on; `kinds` of troubles, or all that the place has."""
    round_ = _Round(place, seed, writers, rows)
    place.start()
    happened = round_.run(troubles, list(kinds or place.troubles), staff)
    for replica in place.replicas:  # an older program knows no events
        if isinstance(place, Cluster) and replica.program != PROGRAM:
            place.replace(replica, PROGRAM)
    round_.check()
    followers = [*round_.all, *round_.own, round_.late]
    report.counts["changes"] += round_.writers.changes.total() + round_.imports.rows
    report.counts["events in the feed"] += len(round_.all[0].seen)
    report.counts["events followed"] += sum(len(each.seen) for each in followers)
    report.counts["answers lost"] += sum(each.lost for each in followers)
    report.counts["imports killed"] += round_.imports.killed
    for kind in happened:
        report.counts[f"times {kind}"] += 1
    for fault in round_.faults[:_SHOWN]:
        report.fault(f"{'SQLite' if place.url.startswith('sqlite') else 'PostgreSQL'}, {fault}")


@cache
def _program_before_events() -> Path:
    """The last one that knew no events, from history."""
    search = ["git", "log", "--diff-filter=A", "--format=%H", "--", _FIRST_STEP]
    (commit,) = subprocess.run(search, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    return from_history(f"{commit}~1", short_folder("older", on_disk=True) / "program")


def run(report: Report, seed: int, seconds: float) -> None:
    """Run the campaign: two of four seeds on a file, one on two replicas that began with an older program."""
    for number, folder in report.rounds_in_folders(seed, seconds):
        with ExitStack() as stack:
            if number % 2:
                place: Place = stack.enter_context(on_a_file(folder))
            else:
                older = _program_before_events() if number % 4 == 0 else None
                place = stack.enter_context(on_postgres(folder, older))
            play(place, report, number, troubles=_TROUBLES, staff=number % 3 == 0)
