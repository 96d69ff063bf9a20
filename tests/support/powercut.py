"""Power cuts without a plug: a script of writes is recorded once, then cut at any of its writes.

After a cut the disk has everything up to each file's last sync; of what was written later it may have any
part, in units of a sector. What the real page cache had in memory is lost. No process is started here.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

from petstore.core.errors import StoreUnavailable
from petstore.core.idempotency import IdempotencyKey
from petstore.core.limits.counters import LimiterState
from petstore.core.limits.plans import FREE
from petstore.core.limits.usage import DailyUsage, UsageChanges
from petstore.core.pets import NewPet, PetChange, PetStatus
from petstore.storage.options import SqliteOptions
from petstore.storage.sqlite.store import SqliteStore
from tests.support.clock import ManualClock
from tests.support.disk import Operation, mounted_disk
from tests.support.journal import ACTOR
from tests.support.windows import used_of

SECTOR = 512
STRATEGIES = ("nothing", "everything", "some writes", "some sectors", "a torn last write")


@dataclass(frozen=True)
class Event:
    """One operation on a file (an offset is a size for a truncation)."""

    operation: Operation
    name: str
    offset: int = 0
    data: bytes = b""


@dataclass
class Recording:
    """Everything that happened to the disk, and what was acknowledged when."""

    events: list[Event] = field(default_factory=list)
    # (number of events that had happened before the acknowledgement, id, name)
    added: list[tuple[int, int, str]] = field(default_factory=list)
    attempted: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Cut:
    """One power cut: before which event, and the fate of the writes that were not synced."""

    at: int
    strategy: str
    seed: str


async def _work(store: SqliteStore, recording: Recording, rng: random.Random, jobs: int) -> None:
    """Additions alone and in groups, some with an Idempotency-Key, and other writes in between."""

    async def add(number: int) -> None:
        name = f"{number} " + "x" * rng.choice((1, 50, 250))
        key = IdempotencyKey(1, name) if rng.random() < 0.3 else None
        recording.attempted.add(name)
        created = await store.pets.add(NewPet(name, number), ACTOR, key)
        recording.added.append((len(recording.events), created.pet.id, name))

    number = len(recording.attempted)
    end = number + jobs
    while number < end:
        size = rng.choice((1, 1, 2, 5))
        await asyncio.gather(*(add(number + n) for n in range(size)))
        number += size
        if rng.random() < 0.1:
            await store.pets.change(rng.randint(1, number), PetChange(status=PetStatus.AVAILABLE), "cut")
        if rng.random() < 0.1:
            state = LimiterState({1: used_of((1, number), (1, number))}, {})
            await store.counters.save(state, UsageChanges({(1, 1): DailyUsage(1, 1)}, {1: number}))
        if rng.random() < 0.05:
            await store.keys.issue("shop", "test", ACTOR)


def record(folder: Path, seed: int, jobs: int) -> Recording:
    """Run a script of `jobs` additions on a watched disk, with checkpoints and restarts in between."""
    recording = Recording()
    rng = random.Random(f"script {seed}")
    path = folder / "recorded.db"

    def remember(operation: Operation, name: str, offset: int, data: bytes) -> None:
        recording.events.append(Event(operation, Path(name).name, offset, bytes(data)))

    async def run() -> None:
        for part in range(3):
            store = SqliteStore(str(path), ManualClock(), SqliteOptions(busy_timeout_ms=1_000))
            if part == 0:
                await store.accounts.add("shop", FREE, ACTOR)
            await _work(store, recording, rng, jobs // 3)
            outside = apsw.Connection(str(path))
            outside.execute(
                f"PRAGMA wal_checkpoint({rng.choice(('PASSIVE', 'FULL', 'RESTART', 'TRUNCATE'))})"
            )
            await _work(store, recording, rng, jobs // 6)
            outside.close()
            await store.close()

    with mounted_disk() as disk:
        disk.after = remember
        asyncio.run(run())
    return recording


def choose(recording: Recording, seed: int, count: int) -> Iterator[Cut]:
    """Cuts spread over the whole recording, with every strategy in turn."""
    rng = random.Random(f"cuts {seed}")
    places = len(recording.events) + 1
    for number in range(count):
        at = number * places // count if count < places else rng.randrange(places)
        yield Cut(at, STRATEGIES[number % len(STRATEGIES)], f"{seed}-{number}")


def _apply(content: bytearray, event: Event) -> None:
    if event.operation == "truncate":
        del content[event.offset :]
    else:
        end = event.offset + len(event.data)
        if len(content) < end:
            content.extend(bytes(end - len(content)))
        content[event.offset : end] = event.data


def _sectors(event: Event) -> Iterator[Event]:
    """A write in pieces that end where sectors do."""
    start = 0
    while start < len(event.data):
        stop = min(len(event.data), start + SECTOR - (event.offset + start) % SECTOR)
        yield Event(event.operation, event.name, event.offset + start, event.data[start:stop])
        start = stop


def _survivors(pending: list[Event], cut: Cut, rng: random.Random) -> list[Event]:
    """What of one file's writes since its last sync the disk has."""
    if cut.strategy == "nothing" or not pending:
        return []
    if cut.strategy == "everything":
        return pending
    if cut.strategy == "some writes":
        return [event for event in pending if rng.random() < 0.5]
    last = pending[-1]
    if cut.strategy == "a torn last write":
        if last.operation != "write":
            return pending
        pieces = list(_sectors(last))
        return [*pending[:-1], *pieces[: rng.randint(0, len(pieces))]]
    kept = []
    for event in pending:
        pieces = [event] if event.operation != "write" else list(_sectors(event))
        kept += [piece for piece in pieces if rng.random() < 0.5]
    return kept


class _Platter:
    """What is certainly on the disk, what may be, and which names the directory may not know yet."""

    def __init__(self) -> None:
        self.durable: dict[str, bytearray] = {}
        self.pending: dict[str, list[Event]] = {}
        self.unlisted: set[str] = set()  # created since the directory was last synced
        self.ghosts: dict[str, bytearray] = {}  # deleted since then

    def happen(self, event: Event) -> None:
        """Go on by one event. SQLite syncs the directory with the first sync of a log or journal."""
        name = event.name
        if event.operation == "delete":
            self.pending.pop(name, None)
            self.ghosts[name] = self.durable.pop(name, bytearray())
            self.unlisted.discard(name)
            if event.offset:
                self._sync_directory()
        elif event.operation == "sync":
            content = self.durable.setdefault(name, bytearray())
            for written in self.pending.pop(name, []):
                _apply(content, written)
            if name in self.unlisted and name.endswith(("-wal", "-journal")):
                self._sync_directory()
        else:
            if name not in self.durable:
                self.durable[name] = bytearray()
                self.unlisted.add(name)
            self.pending.setdefault(name, []).append(event)

    def _sync_directory(self) -> None:
        self.unlisted.clear()
        self.ghosts.clear()

    def found(self, cut: Cut, rng: random.Random) -> dict[str, bytearray]:
        """The files after the cut."""
        files = {}
        for name, content in self.durable.items():
            if name in self.unlisted and (cut.strategy == "nothing" or rng.random() < 0.5):
                continue
            files[name] = content
            for written in _survivors(self.pending.get(name, []), cut, rng):
                _apply(content, written)
        for name, content in self.ghosts.items():
            if name not in files and rng.random() < 0.5:
                files[name] = content
        return files


def leave(recording: Recording, cut: Cut, folder: Path) -> Path:
    """The files as they are found after the cut, in a fresh folder; the database's path."""
    platter = _Platter()
    for event in recording.events[: cut.at]:
        platter.happen(event)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in platter.found(cut, random.Random(cut.seed)).items():
        (folder / name).write_bytes(content)
    return folder / "recorded.db"


def check(recording: Recording, cut: Cut, path: Path) -> list[str]:
    """What is wrong after the restart; nothing, if the store keeps its promises."""
    promised = {pet_id: name for at, pet_id, name in recording.added if at <= cut.at}
    if not path.exists() and not promised:
        return []
    try:
        store = SqliteStore(str(path), ManualClock(), SqliteOptions(10, 1_000))
    except StoreUnavailable as error:
        return [f"lost: everything, since {error.message}"]
    connection = apsw.Connection(str(path))
    try:
        faults = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        rows: list[Any] = connection.execute("SELECT id, name, category_id FROM pets").fetchall()
        keys = connection.execute("SELECT resource_id FROM creations").fetchall()
    except apsw.CorruptError as error:
        asyncio.run(store.close())
        return [f"lost: everything, since {error}"]
    finally:
        connection.close()
    found = {pet_id: name for pet_id, name, _ in rows}
    faults += [f"lost: {pet_id}" for pet_id, name in promised.items() if found.get(pet_id) != name]
    faults += [f"made up: {name!r}" for name in found.values() if name not in recording.attempted]
    faults += [f"torn: {row}" for row in rows if not row[1].startswith(f"{row[2]} ")]
    if twice := len(found) - len(set(found.values())):
        faults.append(f"twice: {twice}")
    faults += [f"a key without its animal: {pet_id}" for (pet_id,) in keys if pet_id not in found]
    if faults:  # what is damaged may take no write
        asyncio.run(store.close())
        return faults
    next_id = asyncio.run(_add_one(store))
    if next_id <= max(found, default=0):
        faults.append(f"used again: {next_id}")
    return faults


async def _add_one(store: SqliteStore) -> int:
    """The store takes writes after the cut."""
    created = await store.pets.add(NewPet("after the cut", 1), ACTOR)
    await store.close()
    return created.pet.id
