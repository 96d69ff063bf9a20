"""Clients at work while PostgreSQL is stopped and started, and what they may rely on afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from petstore.core.errors import IdempotencyKeyInUse, StoreUnavailable
from petstore.core.idempotency import IdempotencyKey
from petstore.core.pets import NewPet, PetChange, PetQuery, PetStatus
from petstore.storage.store import Store
from tests.support.journal import ACTOR, history_faults
from tests.support.postgres import PostgresServer, run
from tests.support.report import lost
from tests.support.waiting import until

_WRITERS, _READERS = 8, 4


async def started_again(server: PostgresServer) -> None:
    """Start the server again, until it takes connections, while this event loop goes on."""
    server.launch()
    await asyncio.to_thread(server.await_answers)


class Load:
    """Clients that add animals one after another and note what they were told."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.acknowledged: dict[str, int] = {}
        self.refused = 0
        self._going = True
        self._last_success = 0.0

    @asynccontextmanager
    async def going_on(self) -> AsyncIterator[None]:
        """All clients, for the length of the block."""
        tasks = [asyncio.create_task(self._add(number)) for number in range(_WRITERS)]
        tasks += [asyncio.create_task(self._read()) for _ in range(_READERS)]
        try:
            yield
        finally:
            self._going = False
            await asyncio.gather(*tasks)

    async def restart(self, server: PostgresServer, how: signal.Signals, successes: int = 50) -> float:
        """Stop the server after some more successes, and start it after some refusals; the seconds from its
        return to the first success."""
        enough = len(self.acknowledged) + successes
        await until(lambda: len(self.acknowledged) >= enough)
        await asyncio.to_thread(server.stop, how)
        noticed = self.refused + 20
        await until(lambda: self.refused >= noticed)
        await started_again(server)
        returned = time.monotonic()
        await until(lambda: self._last_success > returned)
        return self._last_success - returned

    def faults(self, url: str) -> list[str]:
        """What was acknowledged and is not there as it was told, and what is there more than once."""
        kept = run(url, "SELECT name, id FROM pets")
        faults = lost(self.acknowledged, kept)
        if dict(kept).keys() - self.acknowledged.keys():
            faults.append("some are there that nobody was told of, though each client asked until it knew")
        return faults + history_faults(lambda sql: run(url, sql))

    async def _add(self, number: int) -> None:
        """Every animal has a name of its own, and a key; a refused one is tried again until it is there."""
        count = 0
        while self._going:
            name = f"client {number} animal {count}"
            try:
                created = await self.store.pets.add(NewPet(name, number), ACTOR, IdempotencyKey(1, name))
            except (StoreUnavailable, IdempotencyKeyInUse):
                self.refused += 1
                await asyncio.sleep(0)
                continue
            self.acknowledged[name] = created.pet.id
            self._last_success = time.monotonic()
            count += 1
            with contextlib.suppress(StoreUnavailable):  # kept or not, with its entry
                await self.store.pets.change(created.pet.id, PetChange(status=PetStatus.SOLD), ACTOR)

    async def _read(self) -> None:
        """Reads end as well, in an answer or in a refusal."""
        while self._going:
            try:
                await self.store.pets.page(PetQuery())
            except StoreUnavailable:
                await asyncio.sleep(0)
