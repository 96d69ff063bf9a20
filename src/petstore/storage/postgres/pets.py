"""Animals in PostgreSQL. Every query is bounded by an index and by a page's length."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from msgspec.structs import astuple

from petstore.core.clock import Clock
from petstore.core.errors import IdempotencyKeyInUse
from petstore.core.idempotency import KEPT_MS, Creation, IdempotencyKey
from petstore.core.pets import (
    AddedPet,
    NewPet,
    Pet,
    PetPage,
    PetQuery,
    PetStatus,
    recorded_pet,
    values_of_pet,
)
from petstore.storage.postgres.coalescing import CoalescedQuery
from petstore.storage.postgres.database import Database
from petstore.storage.postgres.faults import Repeatable
from petstore.storage.postgres.pool import Connection
from petstore.transactions.idempotency import lock_number
from petstore.transactions.journal import encode
from petstore.transactions.pets import ADD, ONE, PAGE, PAGE_BY_STATUS, Pets, page_from, page_of
from petstore.transactions.rows import (
    NEW_PET,
    PET,
    PUBLIC_BUT_STATUS,
    PUBLIC_PET,
    new_pet_placeholders,
    read_pet,
    read_public_pets,
    read_public_pets_in,
    select,
)
from petstore.transactions.script import CATALOGUE, moment_ms

_PAGE, _PAGE_BY_STATUS, _ONE = PAGE.postgres, PAGE_BY_STATUS.postgres, ONE.postgres
_PAGES_MAX = 64  # in one statement, so that decoding its rows holds up nobody for long
_WAIT_SECONDS = 0.01


def _pages(page: str, columns: Sequence[str]) -> str:
    """Many pages in one statement, each a row of arrays with its number. `$1`: the animals before them."""
    arrays = ", ".join(f"array_agg({column})" for column in columns)
    return (
        "SELECT number, page.* FROM unnest($1::bigint[]) WITH ORDINALITY AS place (before, number)"
        f" CROSS JOIN LATERAL (SELECT {arrays} FROM ({page.replace('$1', 'place.before')}) AS animals)"
        " AS page"
    )


_PAGES, _PAGES_BY_STATUS = _pages(_PAGE, PUBLIC_PET), _pages(_PAGE_BY_STATUS, PUBLIC_BUT_STATUS)


def _record(first: int) -> str:
    """The entry of the animal `added`; its time, actor and members are parameters from `$first` on."""
    return (
        "INSERT INTO journal (at_ms, actor, subject, subject_id, action, after)"
        f" SELECT ${first}::bigint, ${first + 1}::text, 'pet', id, 'added', ${first + 2}::text FROM added"
    )


# The animal and its entry in the journal: one statement, so one round trip instead of four.
_ADD = f"""
WITH added AS ({ADD.postgres})
{_record(1 + len(NEW_PET))} RETURNING subject_id
"""

# One statement, so one round trip instead of seven. The request that gets the lock adds the animal;
# another one gets `held` false. The statement sees commits from before it began. After a later commit the
# INSERT meets the row and adds nothing; then the caller repeats the statement.
_EXPIRED_MS = f"({moment_ms(6)} - {KEPT_MS})"
_ADD_ONCE = f"""
WITH mine AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock($1::bigint) AS held
), known AS (
    SELECT resource, fingerprint, resource_id FROM creations
    WHERE account_id = $2::bigint AND key = $3::text AND created_at_ms > {_EXPIRED_MS}
), claimed AS (
    INSERT INTO creations AS kept (account_id, key, resource, fingerprint, resource_id, created_at_ms)
    SELECT $2::bigint, $3::text, $4::text, $5::bytea, nextval('pets_id_seq'), {moment_ms(6)} FROM mine
    WHERE held AND NOT EXISTS (SELECT FROM known)
    ON CONFLICT (account_id, key) DO UPDATE SET resource = excluded.resource,
    fingerprint = excluded.fingerprint, resource_id = excluded.resource_id,
    created_at_ms = excluded.created_at_ms
    WHERE kept.created_at_ms <= {_EXPIRED_MS}
    RETURNING resource_id
), added AS (
    INSERT INTO pets ({select(PET)}) OVERRIDING SYSTEM VALUE
    SELECT resource_id, {new_pet_placeholders(7)} FROM claimed RETURNING id
), recorded AS (
    {_record(7 + len(NEW_PET))}
)
SELECT mine.held, (SELECT id FROM added), known.* FROM mine LEFT JOIN known ON true
"""


class PostgresPets(Pets):
    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._postgres = database
        self._reading: dict[tuple[int, PetStatus | None], CoalescedQuery[int, dict[int, PetPage]]] = {}

    async def public_page(self, query: PetQuery) -> PetPage:
        if query.ids is not None or query.category_id is not None or query.newest_first:
            statement, arguments = page_of(query, PUBLIC_PET)
            pets = read_public_pets(await self._postgres.fetch(statement.postgres, *arguments))
            return page_from(pets, query.limit)
        listed = query.limit, query.status
        reading = self._reading.get(listed)
        if reading is None:
            reading = self._reading[listed] = CoalescedQuery(
                partial(self._read_pages, *listed), _WAIT_SECONDS
            )
        return (await reading.answer(query.after_id))[query.after_id]

    async def _read_pages(self, limit: int, status: PetStatus | None, wanted: set[int]) -> dict[int, PetPage]:
        """The pages of one list after these animals. Together a page takes a fifth of its time alone."""
        one, many = (_PAGE, _PAGES) if status is None else (_PAGE_BY_STATUS, _PAGES_BY_STATUS)
        more = limit + 1, *(() if status is None else (status.value,))

        def read(rows: Iterable[Iterable[Any]]) -> PetPage:
            pets = read_public_pets(rows) if status is None else read_public_pets_in(rows, status)
            return page_from(pets, limit)

        before = list(wanted)
        if len(before) == 1:
            return {before[0]: read(await self._postgres.fetch(one, before[0], *more))}
        pages = {}
        for first in range(0, len(before), _PAGES_MAX):
            part = before[first : first + _PAGES_MAX]
            for number, *columns in await self._postgres.fetch(many, part, *more):
                pages[part[number - 1]] = read(() if columns[0] is None else zip(*columns, strict=True))
        return pages

    async def look_up(self, pet_id: int) -> Pet | None:
        row = await self._postgres.fetch_row(_ONE, pet_id)
        return read_pet(row) if row else None

    async def add(self, new: NewPet, actor: str, idempotency_key: IdempotencyKey | None = None) -> AddedPet:
        if idempotency_key is not None:
            return await self._add_once(new, actor, idempotency_key)
        entry = self._clock.now_ms(), actor, encode(recorded_pet(new))
        ((pet_id,),) = await self._postgres.write_rows(_ADD, *values_of_pet(new), *entry, effect=CATALOGUE)
        return AddedPet(Pet(pet_id, *astuple(new)), False)

    def _start_once(self, new: NewPet, actor: str, creation: Creation) -> asyncio.Task[tuple[int, bool]]:
        """Create once in one statement instead of the script: a third of the time."""
        mine, pet = creation.idempotency_key, values_of_pet(new)
        entry = self._clock.now_ms(), actor, encode(recorded_pet(new))
        key = lock_number(mine), mine.account_id, mine.text, creation.resource, creation.fingerprint

        async def add(connection: Connection) -> tuple[int, bool]:
            row = await connection.fetchrow(_ADD_ONCE, *key, self._clock.pinned_ms(), *pet, *entry)
            held, added_id, known_resource, known_fingerprint, known_id = row
            if known_id is not None:
                creation.check_replay(known_resource, known_fingerprint)
                return known_id, True
            if not held:
                raise IdempotencyKeyInUse
            if added_id is None:
                raise Repeatable("The store is busy with the same Idempotency-Key; nothing was stored.")
            return added_id, False

        return self._postgres.start_work(add, CATALOGUE, autocommit=True)
