"""Receivers of webhooks that fail at random: 5xx, resets, answers that end too early or too late, time-outs.

Whatever happens to the services meanwhile, each event arrives, and the share that arrives twice is counted.
The services repeat 3,000 times sooner than others; everything else is as it is sold. Every other seed is on
PostgreSQL with two replicas.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from contextlib import AbstractContextManager, suppress
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

from tests.support.cluster import Client
from tests.support.loops import serving_beside
from tests.support.report import Report
from tests.support.waiting import pause
from verification.torture.changing import Writers, keys_of_accounts
from verification.torture.places import Place, changed_program, places

SECONDS = 120.0
_WEBHOOKS = 4
_WRITERS = 2
# Of each list that is imported, once fewer events than this are on their way to a webhook.
_ROWS = 500
_FAILING = 0.3
_TIMED_OUT = 0.0002
_KILLED_EVERY_SECONDS = 10.0
# The last repetitions are a day apart.
_SOONER = 3_000
# After the last kill, which keeps webhooks waiting for 30 seconds.
_END_SECONDS = 300.0
_TROUBLES = ("service", "background", "parent", "stop")
_FAULTS = ("500", "503", "429", "reset", "short", "silent")


class Receiver:
    """Answers at a port of this machine in a thread of its own, and counts what it has accepted."""

    def __init__(self, seed: int, failing: float) -> None:
        self.accepted: dict[str, Counter[str]] = {}  # by path: events by id
        self.secrets: dict[str, Webhook] = {}
        self.faults: list[str] = []
        self.tries = 0
        self._chance = random.Random(seed)
        self._failing = failing

    def at_work(self) -> AbstractContextManager[int]:
        """The receiver's port, for the length of a block."""
        return serving_beside(lambda _: asyncio.start_server(self._serve, "127.0.0.1", 0))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, asyncio.CancelledError):  # at the end of the block
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                first, *lines = head.strip().split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                body = await reader.readexactly(int(headers["content-length"]))
                if not await self._answer(writer, first.split(" ")[1], headers, body):
                    break
        writer.close()

    async def _answer(
        self, writer: asyncio.StreamWriter, path: str, headers: dict[str, str], body: bytes
    ) -> bool:
        """Whether the connection goes on."""
        self.tries += 1
        event = json.loads(body)
        self._check(path, headers, body, event)
        if self._chance.random() < _TIMED_OUT:
            await asyncio.sleep(16)
            return False
        if self._chance.random() >= self._failing:
            self.accept(path, event["id"])
            slow = self._chance.random() < 0.001  # its body comes late, and its status counts
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")
            await asyncio.sleep(1 if slow else 0)
            writer.write(b"ok")
            return True
        match self._chance.choice(_FAULTS):
            case "reset":
                writer.transport.abort()
                return False
            case "silent":
                return False
            case "short":  # no whole head
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-le")
                return False
            case status:
                retry = b"retry-after: 1\r\n" if self._chance.random() < 0.01 else b""
                writer.write(b"HTTP/1.1 %b No\r\n%bcontent-length: 0\r\n\r\n" % (status.encode(), retry))
                return True

    def accept(self, path: str, event_id: str) -> None:
        """An event is the receiver's from now on."""
        self.accepted.setdefault(path, Counter())[event_id] += 1

    def _check(self, path: str, headers: dict[str, str], body: bytes, event: dict[str, Any]) -> None:
        """The signature of every hundredth, and the id of each."""
        if event["id"] != headers["webhook-id"]:
            self.faults.append(f"{path}: the id is {headers['webhook-id']} and {event['id']}")
        if self.tries % 100 == 0 and path in self.secrets:
            try:
                self.secrets[path].verify(body, headers)
            except WebhookVerificationError as error:
                self.faults.append(f"{path}: {error}")


class Round:
    """One database with webhooks of two accounts, and `receiver`, which gets them."""

    def __init__(self, place: Place, receiver: Receiver, port: int, report: Report, seed: int) -> None:
        self._place = place
        self.receiver = receiver
        self._report = report
        self._keys = keys_of_accounts(place.url)
        self._chance = random.Random(f"{seed} troubles")
        self._writers = Writers(place.ports, self._keys, _WRITERS, seed)
        self._clients = [Client(place.ports[0], key) for key in self._keys]
        for number in range(_WEBHOOKS):
            types = ["pet.*"] if number < _WEBHOOKS - 1 else ["order.*"]
            document = {"url": f"http://127.0.0.1:{port}/{number}", "types": types}
            made = self._clients[number % 2]("POST", "/v1/webhooks", document).json()
            receiver.secrets[f"/{number}"] = Webhook(made["secret"])

    def run(self, seconds: float, rows: int, kinds: tuple[str, ...], every_seconds: float) -> None:
        """Make events for so long, as fast as they arrive; then wait until all have."""
        tended = self._place.troubles_now_and_then(kinds, every_seconds, self._chance, self._report.counts)
        ends = time.monotonic() + seconds
        while True:
            with self._writers.at_work():
                self._import(rows)
                next(tended)
            while (is_on := time.monotonic() < ends) and self._is_behind(rows):
                next(tended)
            if not is_on:
                break
        self._writers.close()
        ends = time.monotonic() + _END_SECONDS
        while self._missing() and time.monotonic() < ends:
            pause(0.5)
            self._place.tend()
        self.judge()
        self._count()

    def judge(self) -> None:
        """Report what was not accepted."""
        for path, ids in self._missing().items():
            self._report.fault(
                f"{self._place.url.partition(':')[0]}: {path} lacks {len(ids)}: {sorted(ids)[:3]}"
            )

    def _import(self, rows: int) -> None:
        """A list of new animals, by a command."""
        path = self._place.folder / "stock.csv"
        lines = [f"Animal {n},{n % 9},available\n" for n in range(rows)]
        path.write_text("name,categoryId,status\n" + "".join(lines))
        self._place.command("pets", "import", path)

    def _is_behind(self, most: int) -> bool:
        return any(len(ids) >= most for ids in self._missing().values())

    def _missing(self) -> dict[str, set[str]]:
        """The events of the journal that were not accepted yet, by path."""
        pets = self._ids("subject = 'pet'")
        orders = self._ids("subject = 'order' AND subject_id IN (SELECT id FROM orders WHERE account_id = 2)")
        expected = {f"/{n}": pets if n < _WEBHOOKS - 1 else orders for n in range(_WEBHOOKS)}
        missing = {p: ids - self.receiver.accepted.get(p, Counter()).keys() for p, ids in expected.items()}
        self._expected = expected
        return {path: ids for path, ids in missing.items() if ids}

    def _ids(self, where: str) -> set[str]:
        ((identity,),) = self._place.rows("SELECT identity FROM data_set")
        first = "(SELECT max(id) FROM journal WHERE subject = 'webhook' AND action = 'added')"
        rows = self._place.rows(f"SELECT id FROM journal WHERE {where} AND id > {first}")
        return {f"evt_{identity}_{number}" for (number,) in rows}

    def _count(self) -> None:
        report, receiver = self._report, self.receiver
        for path, accepted in receiver.accepted.items():
            if strange := accepted.keys() - self._expected[path]:
                report.fault(f"{path} was told of what is not its own: {sorted(strange)[:3]}")
            report.counts["events accepted"] += len(accepted)
            report.counts["more than once"] += sum(count > 1 for count in accepted.values())
        report.counts["tries"] += receiver.tries
        for fault in receiver.faults[:5]:
            report.fault(fault)


def play(
    place: Place,
    report: Report,
    seed: int,
    *,
    seconds: float = SECONDS,
    rows: int = _ROWS,
    kinds: tuple[str, ...] = _TROUBLES,
    every_seconds: float = _KILLED_EVERY_SECONDS,
    sooner: int = _SOONER,
) -> Round:
    """One database, and the events of its animals and orders, repeated so many times sooner."""
    receiver = Receiver(seed, _FAILING)
    pauses = f"webhooks.REPETITIONS_MS = tuple(ms // {sooner} for ms in webhooks.REPETITIONS_MS)"
    program = changed_program(place.folder, "from petstore.core import webhooks", pauses)
    for replica in place.replicas:
        replica.program = program
    with receiver.at_work() as port:
        place.start()
        round_ = Round(place, receiver, port, report, seed)
        round_.run(seconds, rows, kinds, every_seconds)
    return round_


def run(report: Report, seed: int, seconds: float) -> None:
    """A round from each seed."""
    for number, place in places(report, seed, seconds):
        play(place, report, number)
