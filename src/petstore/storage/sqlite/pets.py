"""Animals in SQLite. Every query is bounded by an index and by a page's length."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from petstore.core.clock import Clock
from petstore.core.idempotency import Idempotency
from petstore.core.pets import STATUSES, Created, NewPet, Page, PageQuery, Pet
from petstore.storage.rows import PET, read_pet, select
from petstore.storage.sqlite.connection import translate, translated
from petstore.storage.sqlite.database import Database
from petstore.storage.sqlite.loop_reader import LoopReader
from petstore.storage.sqlite.writer import Writer
from petstore.storage.transactions.journal import RECORD, encode
from petstore.storage.transactions.pets import ONE, PAGE, PAGE_BY_STATUS, Pets

_PAGE, _PAGE_BY_STATUS, _ONE = PAGE.sqlite, PAGE_BY_STATUS.sqlite, ONE.sqlite
# Without RETURNING, which costs a third of the statement.
_RECORD = RECORD.sqlite
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
        sql = (
            f"SELECT {select(PET)} FROM pets WHERE id IN ({places}) {condition}AND id > ? ORDER BY id LIMIT ?"
        )
        return self._reader.execute(sql, (*bindings, query.after_id, fetch)).fetchall()

    async def get(self, pet_id: int) -> Pet | None:
        with translated():
            row = self._reader.execute(_ONE, (pet_id,)).fetchone()
        return read_pet(row) if row else None

    async def add(self, new: NewPet, actor: str, idempotency: Idempotency | None = None) -> Created:
        if idempotency is not None:
            return await self._add_once(new, actor, idempotency)
        now_ms = self._clock.now_ms()
        return await self._writer.submit(
            lambda connection: Created(_insert(connection, new, actor, now_ms), False)
        )


def _insert(connection: apsw.Connection, new: NewPet, actor: str, now_ms: int) -> Pet:
    execute = connection.execute
    execute(_ADD, (new.name, new.category_id, new.status.value))
    pet_id = connection.last_insert_rowid()
    execute(_RECORD, (now_ms, actor, "pet", pet_id, "added", None, encode(new)))
    return Pet(pet_id, new.name, new.category_id, new.status)
