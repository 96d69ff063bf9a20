"""Each list as CSV, as it is filtered: read and sent page by page, however long it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from petstore.console import account_pages, journal, journal_pages, order_pages, pet_pages
from petstore.console.accounts import account_of
from petstore.console.categories import names_in
from petstore.console.lists import Row, RowPage
from petstore.console.several import ROWS_MAX
from petstore.console.visit import View, Visit, address
from petstore.core.durations import DAY_MS
from petstore.core.errors import Invalid, InvalidBody, NotFound
from petstore.core.journal import people_of
from petstore.core.lists.spreadsheets import csv_bytes, marked
from petstore.core.moments import iso_day, iso_moment, iso_moment_or_none
from petstore.core.pets import MEMBERS, written_pet
from petstore.core.values import INT64_MAX

# A few milliseconds of work, and then others have their turn.
_AT_A_TIME = 250
_T = TypeVar("_T", bound=Row)
Cells = Sequence[str | int | None]
# Reads the rows after a position, None for the first ones; the position of the next ones, None at the end.
Read = Callable[[Any], Awaitable[tuple[list[Cells], Any]]]
# What a list's address asks for: its columns, and its rows.
Export = Callable[[Visit], Awaitable[tuple[Cells, Read]]]


def _download(export: Export) -> Callable[[Visit], Awaitable[Response]]:
    """A wrong filter leads to the list, which says what is wrong with it."""

    async def answer(visit: Visit) -> Response:
        page = visit.page_path.removesuffix(".csv")
        try:
            columns, read = await export(visit)
            first = await read(None)
        except (InvalidBody, NotFound):
            return visit.redirect(address(quote(page), visit.query))
        name = f"{page.rpartition('/')[2]}-{iso_day(visit.now_ms // DAY_MS)}.csv"
        return visit.download(name, marked(_written(columns, read, *first)))

    return answer


async def _written(columns: Cells, read: Read, rows: list[Cells], position: Any) -> AsyncIterator[bytes]:
    yield csv_bytes([columns, *rows])
    while position is not None:
        await asyncio.sleep(0)  # SQLite's next page is read from a newer state
        rows, position = await read(position)
        yield csv_bytes(rows)


async def _pets(visit: Visit) -> tuple[Cells, Read]:
    (text, wanted), names = pet_pages.read_search(visit), await names_in(visit)

    async def read(position: int | None) -> tuple[list[Cells], Any]:
        query = replace(wanted, after_id=position or 0, limit=wanted.limit if text else _AT_A_TIME)
        pets, next_start = _found(await pet_pages.find_pets(visit, text, query))
        return [(pet.id, *written_pet(pet), names.label(pet.category_id)) for pet in pets], next_start

    return ("id", *MEMBERS, "category"), read


def _found(found: RowPage[_T]) -> tuple[list[_T], Any]:
    """Raises Invalid for a search that finds beginnings of names alone."""
    if not found.is_built:
        raise Invalid("q", "The index of names is being made.")
    return found.rows, found.next_start or None


async def _orders(visit: Visit) -> tuple[Cells, Read]:
    asked = order_pages.read_search(visit)
    query = replace(await order_pages.query_of(visit, asked), limit=ROWS_MAX if asked["q"] else _AT_A_TIME)

    async def read(position: int | None) -> tuple[list[Cells], Any]:
        after = replace(query, after_id=position or 0)
        orders, next_start = _found(await order_pages.find_orders(visit, asked["q"], after))
        rows: list[Cells] = [
            (
                order.id,
                account or order.account_id,
                order.pet_id,
                pet.name if pet else None,
                order.status,
                order.reference,
                iso_moment(order.created_at_ms),
                iso_moment_or_none(order.ship_date_ms),
            )
            for order, account, pet in await order_pages.rows_of(visit, orders)
        ]
        return rows, next_start

    return ("id", "account", "petId", "animal", "status", "reference", "placedAt", "shipDate"), read


async def _accounts(visit: Visit) -> tuple[Cells, Read]:
    asked = visit.asked("q", "state", "plan")
    query = account_pages.read_search(asked, ROWS_MAX if asked["q"] else _AT_A_TIME, "")

    async def read(position: int | str | None) -> tuple[list[Cells], Any]:
        found = await account_pages.find_accounts(visit, replace(query, after=str(position or "")))
        uses, next_start = _found(found)
        rows: list[Cells] = [
            (
                each.account.id,
                each.account.name,
                each.account.plan.name,
                each.account.plan.per_day,
                each.used_today,
                each.account.state,
                iso_moment(each.account.created_at_ms),
            )
            for each in uses
        ]
        return rows, next_start

    return ("id", "name", "plan", "perDay", "usedToday", "state", "createdAt"), read


async def _keys(visit: Visit) -> tuple[Cells, Read]:
    account = await account_of(visit)

    async def read(position: int | None) -> tuple[list[Cells], Any]:
        before = INT64_MAX if position is None else position
        found = await visit.store.keys.of_account(str(account.id), newest=_AT_A_TIME, before_id=before)
        rows: list[Cells] = [
            (
                key.id,
                key.display,
                key.label,
                key.access,
                key.state(visit.now_ms),
                iso_moment(key.created_at_ms),
                iso_moment_or_none(key.last_used_at_ms),
                iso_moment_or_none(key.expires_at_ms),
            )
            for key in found[::-1]
        ]
        return rows, found[0].id if len(found) == _AT_A_TIME else None

    return ("id", "key", "label", "level", "state", "createdAt", "lastUsedAt", "expiresAt"), read


async def _journal(visit: Visit) -> tuple[Cells, Read]:
    query = replace(await journal_pages.read_query(visit), limit=_AT_A_TIME)

    async def read(position: int | None) -> tuple[list[Cells], Any]:
        page = await visit.store.journal.page(replace(query, before_id=position))
        people = await visit.store.people.names(people_of(page.entries))
        rows: list[Cells] = [
            (
                line.entry.id,
                iso_moment(line.entry.at_ms),
                line.entry.actor,
                line.what,
                line.about,
                *(
                    None if side is None else msgspec.json.encode(side).decode()
                    for side in (line.entry.before, line.entry.after)
                ),
            )
            for line in journal.lines(page.entries, people=people)
        ]
        return rows, page.next_start

    return ("id", "at", "who", "what", "about", "before", "after"), read


async def _bans(visit: Visit) -> tuple[Cells, Read]:
    async def read(position: tuple[int, int] | None) -> tuple[list[Cells], Any]:
        found = await visit.store.usage.bans(visit.now_ms, after=position or (0, 0), limit=_AT_A_TIME)
        rows: list[Cells] = [
            (ban.account, ban.key_id, ban.display, ban.label, ban.level, iso_moment(ban.banned_until_ms))
            for ban in found
        ]
        is_last = len(found) < _AT_A_TIME
        return rows, None if is_last else (found[-1].banned_until_ms, found[-1].key_id)

    return ("account", "keyId", "key", "label", "level", "bannedUntil"), read


VIEWS = [
    View("GET", f"/{page}.csv", _download(export))
    for page, export in (
        ("pets", _pets),
        ("orders", _orders),
        ("accounts", _accounts),
        ("accounts/{account_id}/keys", _keys),
        ("journal", _journal),
        ("bans", _bans),
    )
]
