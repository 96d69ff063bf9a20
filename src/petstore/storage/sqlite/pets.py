"""Animals in SQLite. Every query is bounded by an index and by a page's length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from petstore.core.clock import Clock
from petstore.core.errors import IdempotencyKeyInUse
from petstore.core.pets import (
    IDEMPOTENCY_KEPT_MS,
    STATUSES,
    Created,
    Idempotency,
    NewPet,
    Page,
    PageQuery,
    Pet,
    fingerprint,
    replayed,
)
from petstore.storage.rows import PET, read_pet, select
from petstore.storage.sqlite.connection import translate, translated
from petstore.storage.sqlite.database import Database
from petstore.storage.sqlite.loop_reader import LoopReader
from petstore.storage.sqlite.writer import Writer
from petstore.storage.transactions.pets import Pets

_COLUMNS = select(PET)
_PAGE = f"SELECT {_COLUMNS} FROM pets WHERE id > ? ORDER BY id LIMIT ?"
# Without the status, which the query knows already.
_PAGE_BY_STATUS = "SELECT id, name, category_id FROM pets WHERE status = ? AND id > ? ORDER BY id LIMIT ?"
_ONE = f"SELECT {_COLUMNS} FROM pets WHERE id = ?"
_ADD = "INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)"


def _pets(rows: Iterable[tuple[Any, ...]]) -> list[Pet]:
    statuses = STATUSES
    return [Pet(row[0], row[1], row[2], statuses[row[3]]) for row in rows]


class SqlitePets(Pets):
    """Implements pets.PetRepository."""

    def __init__(self, reader: LoopReader, writer: Writer, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._reader = reader
        self._writer = writer
        self._in_flight: set[Idempotency] = set()

    async def page(self, query: PageQuery) -> Page:
        fetch, status = query.limit + 1, query.status
        try:
            if query.ids is not None:
                pets = _pets(self._rows_by_id(query, fetch))
            elif status is None:
                pets = _pets(self._reader.execute(_PAGE, (query.after_id, fetch)))
            else:
                bindings = (str(status), query.after_id, fetch)
                rows: list[tuple[Any, ...]] = self._reader.execute(_PAGE_BY_STATUS, bindings).fetchall()
                pets = [Pet(pet_id, name, category_id, status) for pet_id, name, category_id in rows]
        except apsw.Error as error:
            raise translate(error) from error
        if len(pets) < fetch:
            return Page(pets, False)
        pets.pop()
        return Page(pets, True)

    def _rows_by_id(self, query: PageQuery, fetch: int) -> list[tuple[Any, ...]]:
        assert query.ids is not None
        places = ", ".join("?" * len(query.ids))
        condition, bindings = "", list[object](query.ids)
        if query.status is not None:
            # The plus keeps the index by status out of it: the identifiers are the narrower way in.
            condition = "AND +status = ? "
            bindings.append(query.status.value)
        sql = f"SELECT {_COLUMNS} FROM pets WHERE id IN ({places}) {condition}AND id > ? ORDER BY id LIMIT ?"
        return self._reader.execute(sql, (*bindings, query.after_id, fetch)).fetchall()

    async def get(self, pet_id: int) -> Pet | None:
        with translated():
            row = self._reader.execute(_ONE, (pet_id,)).fetchone()
        return read_pet(row) if row else None

    async def add(self, new: NewPet, idempotency: Idempotency | None = None) -> Created:
        if idempotency is None:
            return await self._writer.submit(lambda connection: Created(_insert(connection, new), False))
        if idempotency in self._in_flight:
            raise IdempotencyKeyInUse
        self._in_flight.add(idempotency)
        try:
            now_ms = self._clock.now_ms()
            return await self._writer.submit(
                lambda connection: _insert_once(connection, new, idempotency, now_ms)
            )
        finally:
            self._in_flight.discard(idempotency)


def _insert(connection: apsw.Connection, new: NewPet) -> Pet:
    connection.execute(_ADD, (new.name, new.category_id, new.status.value))
    return Pet(connection.last_insert_rowid(), new.name, new.category_id, new.status)


def _insert_once(connection: apsw.Connection, new: NewPet, idempotency: Idempotency, now_ms: int) -> Created:
    """Add the animal unless this key did so within the last 24 hours: same transaction as the animal."""
    row = connection.execute(
        "SELECT fingerprint, pet_id FROM idempotency_keys"
        " WHERE account_id = ? AND key = ? AND created_at_ms > ?",
        (idempotency.account_id, idempotency.key, now_ms - IDEMPOTENCY_KEPT_MS),
    ).fetchone()
    if row is not None:
        return replayed(row[1], row[0], new)
    pet = _insert(connection, new)
    connection.execute(
        "INSERT OR REPLACE INTO idempotency_keys VALUES (?, ?, ?, ?, ?)",
        (idempotency.account_id, idempotency.key, fingerprint(new), pet.id, now_ms),
    )
    return Created(pet, False)
