"""Animals in SQLite. Every query is bounded by an index and by a page's length."""

from __future__ import annotations

import apsw
from msgspec.structs import astuple

from petstore.core.clock import Clock
from petstore.core.idempotency import IdempotencyKey
from petstore.core.pets import AddedPet, NewPet, Pet, PetPage, PetQuery, recorded_pet, values_of_pet
from petstore.storage.sqlite.connection import translate
from petstore.storage.sqlite.database import Database
from petstore.storage.sqlite.loop_reader import LoopReader
from petstore.storage.sqlite.writer import Writer
from petstore.transactions.journal import RECORD, encode
from petstore.transactions.pets import ADD, ONE, PAGE, PAGE_BY_STATUS, Pets, page_of
from petstore.transactions.rows import PUBLIC_PET, read_pet, read_public_pets, read_public_pets_in

_PAGE, _PAGE_BY_STATUS, _ONE = PAGE.sqlite, PAGE_BY_STATUS.sqlite, ONE.sqlite
_RECORD = RECORD.sqlite
# RETURNING costs a third of the statement.
_ADD = ADD.sqlite.removesuffix(" RETURNING id")


class SqlitePets(Pets):
    def __init__(self, reader: LoopReader, writer: Writer, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._reader = reader
        self._writer = writer

    def public_page(self, query: PetQuery) -> PetPage:
        fetch, status = query.limit + 1, query.status
        execute = self._reader.execute  # fetchall of its cursor saves 2.5 of 29 us
        try:
            if query.ids is not None or query.category_id is not None or query.newest_first:
                statement, arguments = page_of(query, PUBLIC_PET)
                pets = read_public_pets(execute(statement.sqlite, arguments).fetchall())
            elif status is None:
                pets = read_public_pets(execute(_PAGE, (query.after_id, fetch)).fetchall())
            else:
                bindings = (query.after_id, fetch, str(status))
                pets = read_public_pets_in(execute(_PAGE_BY_STATUS, bindings).fetchall(), status)
        except apsw.Error as error:
            raise translate(error) from error
        if len(pets) < fetch:
            return PetPage(pets, False)
        pets.pop()
        return PetPage(pets, True)

    def look_up(self, pet_id: int) -> Pet | None:
        try:
            row = self._reader.execute(_ONE, (pet_id,)).fetchone()
        except apsw.Error as error:
            raise translate(error) from error
        return read_pet(row) if row else None

    async def add(self, new: NewPet, actor: str, idempotency_key: IdempotencyKey | None = None) -> AddedPet:
        if idempotency_key is not None:
            return await self._add_once(new, actor, idempotency_key)
        now_ms = self._clock.now_ms()
        return await self._writer.submit(
            lambda connection: AddedPet(_insert(connection, now_ms, new, actor), False)
        )


def _insert(connection: apsw.Connection, now_ms: int, new: NewPet, actor: str) -> Pet:
    execute = connection.execute
    execute(_ADD, values_of_pet(new))
    pet_id = connection.last_insert_rowid()
    execute(_RECORD, (now_ms, actor, "pet", pet_id, "added", None, encode(recorded_pet(new))))
    return Pet(pet_id, *astuple(new))
