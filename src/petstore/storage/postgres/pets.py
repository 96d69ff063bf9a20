"""Animals in PostgreSQL. Every query is bounded by an index and by a page's length."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from petstore.core.clock import Clock
from petstore.core.errors import IdempotencyKeyInUse
from petstore.core.pets import (
    IDEMPOTENCY_KEPT_MS,
    Created,
    Idempotency,
    NewPet,
    Page,
    PageQuery,
    Pet,
    fingerprint,
    replayed,
)
from petstore.storage.postgres.clocks import moment_ms, steered_ms
from petstore.storage.postgres.database import Database
from petstore.storage.postgres.faults import Repeatable
from petstore.storage.postgres.pool import Connection
from petstore.storage.rows import PET, read_pet, select
from petstore.storage.transactions.pets import Pets

_COLUMNS = select(PET)
_PAGE = f"SELECT {_COLUMNS} FROM pets WHERE id > $1 ORDER BY id LIMIT $2"
# Without the status, which the query knows already.
_PAGE_BY_STATUS = "SELECT id, name, category_id FROM pets WHERE status = $1 AND id > $2 ORDER BY id LIMIT $3"
_PAGE_BY_ID = f"SELECT {_COLUMNS} FROM pets WHERE id = ANY($1::bigint[]) AND id > $2 ORDER BY id LIMIT $3"
_PAGE_BY_ID_AND_STATUS = (
    f"SELECT {_COLUMNS} FROM pets WHERE id = ANY($1::bigint[]) AND id > $2 AND status = $4"
    " ORDER BY id LIMIT $3"
)
_ONE = f"SELECT {_COLUMNS} FROM pets WHERE id = $1"
_ADD = "INSERT INTO pets (name, category_id, status) VALUES ($1, $2, $3) RETURNING id"
_EXPIRED_MS = f"({moment_ms(5)} - {IDEMPOTENCY_KEPT_MS})"

# One statement, so one round trip. Whoever gets the lock of the key is the one that carries it out; who does
# not is told so. The statement sees what was committed before it began: when another one commits in between,
# the row is there and no conflict is resolved, so nothing is added, and the caller asks again.
_ADD_ONCE = f"""
WITH mine AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock($1::bigint) AS held
), known AS (
    SELECT fingerprint, pet_id FROM idempotency_keys
    WHERE account_id = $2::bigint AND key = $3::text AND created_at_ms > {_EXPIRED_MS}
), claimed AS (
    INSERT INTO idempotency_keys AS kept (account_id, key, fingerprint, pet_id, created_at_ms)
    SELECT $2::bigint, $3::text, $4::bytea, nextval('pets_id_seq'), {moment_ms(5)} FROM mine
    WHERE held AND NOT EXISTS (SELECT FROM known)
    ON CONFLICT (account_id, key) DO UPDATE
    SET fingerprint = excluded.fingerprint, pet_id = excluded.pet_id, created_at_ms = excluded.created_at_ms
    WHERE kept.created_at_ms <= {_EXPIRED_MS}
    RETURNING pet_id
), added AS (
    INSERT INTO pets (id, name, category_id, status) OVERRIDING SYSTEM VALUE
    SELECT pet_id, $6::text, $7::bigint, $8::text FROM claimed RETURNING id
)
SELECT mine.held, (SELECT id FROM added), known.fingerprint, known.pet_id FROM mine LEFT JOIN known ON true
"""


def _lock_number(idempotency: Idempotency) -> int:
    """64 bits for an account's key; two that share them are told to come again, and nothing worse."""
    text = f"{idempotency.account_id}:{idempotency.key}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big", signed=True)


class PostgresPets(Pets):
    """Implements pets.PetRepository."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._postgres = database
        self._in_flight: set[Idempotency] = set()
        self._abandoned: dict[Idempotency, asyncio.Task[Created]] = {}

    async def page(self, query: PageQuery) -> Page:
        fetch, status = self._postgres.fetch, query.status
        if query.ids is not None:
            pets = [read_pet(row) for row in await self._rows_by_id(query, query.ids)]
        elif status is None:
            pets = [read_pet(row) for row in await fetch(_PAGE, query.after_id, query.limit + 1)]
        else:
            rows = await fetch(_PAGE_BY_STATUS, status.value, query.after_id, query.limit + 1)
            pets = [Pet(row[0], row[1], row[2], status) for row in rows]
        if len(pets) <= query.limit:
            return Page(pets, False)
        pets.pop()
        return Page(pets, True)

    async def _rows_by_id(self, query: PageQuery, ids: tuple[int, ...]) -> list[Any]:
        arguments = (ids, query.after_id, query.limit + 1)
        if query.status is None:
            return await self._postgres.fetch(_PAGE_BY_ID, *arguments)
        return await self._postgres.fetch(_PAGE_BY_ID_AND_STATUS, *arguments, query.status.value)

    async def get(self, pet_id: int) -> Pet | None:
        row = await self._postgres.fetch_row(_ONE, pet_id)
        return read_pet(row) if row else None

    async def add(self, new: NewPet, idempotency: Idempotency | None = None) -> Created:
        if idempotency is not None:
            return await self._add_once_here(new, idempotency)
        row = await self._postgres.write_row(
            _ADD, new.name, new.category_id, new.status.value, catalogue=True
        )
        return Created(Pet(row[0], new.name, new.category_id, new.status), False)

    async def _add_once_here(self, new: NewPet, idempotency: Idempotency) -> Created:
        """Tells the requests of this process apart; the key's lock does so for all."""
        if idempotency in self._in_flight:
            raise IdempotencyKeyInUse
        self._in_flight.add(idempotency)
        try:
            abandoned = self._abandoned.get(idempotency)
            if abandoned is not None:
                await asyncio.wait([abandoned])
            return await self._add_once(new, idempotency)
        finally:
            self._in_flight.discard(idempotency)

    async def _add_once(self, new: NewPet, idempotency: Idempotency) -> Created:
        now = steered_ms(self._clock)
        task = self._postgres._start(
            lambda connection: _insert_once(connection, new, idempotency, now), True, False, autocommit=True
        )
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():  # the client went away; its next attempt waits for what this one does
                self._abandoned[idempotency] = task
                task.add_done_callback(lambda _: self._abandoned.pop(idempotency, None))
            raise


async def _insert_once(
    connection: Connection, new: NewPet, idempotency: Idempotency, now: int | None
) -> Created:
    """Add the animal unless this key did so within the last 24 hours: same transaction as the animal."""
    row = await connection.fetchrow(
        _ADD_ONCE,
        _lock_number(idempotency),
        idempotency.account_id,
        idempotency.key,
        fingerprint(new),
        now,
        new.name,
        new.category_id,
        new.status.value,
    )
    held, added_id, known_fingerprint, known_id = row
    if known_id is not None:
        return replayed(known_id, known_fingerprint, new)
    if not held:
        raise IdempotencyKeyInUse
    if added_id is None:
        raise Repeatable("The store is busy with the same Idempotency-Key; nothing was stored.")
    return Created(Pet(added_id, new.name, new.category_id, new.status), False)
