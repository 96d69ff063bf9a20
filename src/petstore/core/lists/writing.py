"""Writes animals as stock lists, which an import takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import msgspec
from msgspec.structs import replace

from petstore.core.fields import Value
from petstore.core.lists.spreadsheets import csv_bytes
from petstore.core.pets import MEMBERS, PetPage, PetQuery, written_pet

_encode_lines = msgspec.json.Encoder().encode_lines


async def written_list(
    read_page: Callable[[PetQuery], Awaitable[PetPage]],
    read_keys: Callable[[Sequence[int]], Awaitable[dict[int, str]]],
    query: PetQuery,
    form: str,
    key_name: str | None,
) -> AsyncIterator[bytes]:
    """The list in pieces, `form` being `csv` or `jsonl`; with source keys if their column has a name.

    `query` has the filters and the length of a page, of at most SOURCE_KEYS_MAX animals. Every animal that is
    there before and is not removed meanwhile is in the list once, as it was when its page was read.
    """
    columns = (key_name, *MEMBERS) if key_name else MEMBERS
    if form == "csv":
        yield csv_bytes([columns])
    while True:
        page = await read_page(query)
        rows = [written_pet(pet) for pet in page.pets]
        if key_name:
            keys = await read_keys([pet.id for pet in page.pets])
            rows = [(keys.get(pet.id), *row) for pet, row in zip(page.pets, rows, strict=True)]
        yield csv_bytes(rows) if form == "csv" else _json_lines(columns, rows)
        if not page.has_more:
            return
        query = replace(query, after_id=page.pets[-1].id)
        await asyncio.sleep(0)  # SQLite's next page is read from a newer state


def _json_lines(columns: Sequence[str], rows: list[tuple[Value, ...]]) -> bytes:
    return _encode_lines(
        [{name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in rows]
    )
