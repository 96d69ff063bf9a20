"""Writes animals as stock lists, which an import takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from petstore.core.lists.spreadsheets import csv_bytes
from petstore.core.pets import MEMBERS, PageQuery, Pet, PetRepository, values_of_pet
from petstore.core.stock import StockRepository


class ListWriter(Protocol):
    """Writes a list by its heading, then page by page."""

    def heading(self) -> bytes: ...

    def page(self, pets: Sequence[Pet], keys: dict[int, str]) -> bytes:
        """The animals, with the source keys of those that have one."""
        ...


class CsvPages:
    """Implements ListWriter for CSV that CsvList reads."""

    def __init__(self, key_name: str | None) -> None:
        self._key_name = key_name

    def heading(self) -> bytes:
        return csv_bytes([[*([self._key_name] if self._key_name else []), *MEMBERS]])

    def page(self, pets: Sequence[Pet], keys: dict[int, str]) -> bytes:
        rows = map(values_of_pet, pets)
        if self._key_name is None:
            return csv_bytes(rows)
        return csv_bytes([(keys.get(pet.id), *row) for pet, row in zip(pets, rows, strict=True)])


class JsonPages:
    """Implements ListWriter for lines that JsonList reads."""

    def __init__(self, key_name: str | None) -> None:
        self._key_name = key_name
        self._encode = msgspec.json.Encoder().encode_lines

    def heading(self) -> bytes:
        return b""

    def page(self, pets: Sequence[Pet], keys: dict[int, str]) -> bytes:
        return self._encode(
            [
                ({self._key_name: keys[pet.id]} if pet.id in keys else {})
                | {
                    member: value
                    for member, value in zip(MEMBERS, values_of_pet(pet), strict=True)
                    if value is not None
                }
                for pet in pets
            ]
        )


_WRITERS: dict[str, type[CsvPages] | type[JsonPages]] = {"csv": CsvPages, "jsonl": JsonPages}


async def written_list(
    pets: PetRepository, stock: StockRepository, query: PageQuery, form: str, key_name: str | None
) -> AsyncIterator[bytes]:
    """The list in pieces, `form` being `csv` or `jsonl`; with source keys if their column has a name.

    `query` has the filters and the length of a page, of at most SOURCE_KEYS_MAX animals. Every animal that is
    there before and is not removed meanwhile is in the list once, as it was when its page was read.
    """
    writer: ListWriter = _WRITERS[form](key_name)
    yield writer.heading()
    while True:
        page = await pets.page(query)
        keys = await stock.source_keys([pet.id for pet in page.pets]) if key_name else {}
        yield writer.page(page.pets, keys)
        if not page.has_more:
            return
        query = replace(query, after_id=page.pets[-1].id)
        await asyncio.sleep(0)  # SQLite's next page is read from a newer state
