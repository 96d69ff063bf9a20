"""Pages of a list along its identifiers, in both directions, or of the rows that have certain words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from petstore.console.visit import Visit, address
from petstore.core.orders import OrderQuery
from petstore.core.pets import PetQuery
from petstore.core.search import id_in
from petstore.core.values import COUNTED_MAX
from petstore.transactions.search import SearchQuery


class Row(Protocol):
    """Anything with an identifier."""

    @property
    def id(self) -> int: ...


_T = TypeVar("_T", bound=Row)
Q = TypeVar("Q", PetQuery, OrderQuery)
# The rows of these identifiers, in any order, that match the other filters.
ReadIds = Callable[[tuple[int, ...]], Awaitable[list[_T]]]


class RowPage(msgspec.Struct, Generic[_T], frozen=True):
    """A page. `previous` is its first identifier, `next_start` its last or a name; 0 or empty if there is
    no such page.

    `is_cut`, `is_late`: as in SearchPage. Without `is_built` they are those whose texts begin
    with the words.
    """

    rows: list[_T] = []
    is_first: bool = True
    previous: int = 0
    next_start: int | str = 0
    is_cut: bool = False
    is_late: bool = False
    is_built: bool = True


async def find_page(
    visit: Visit, query: Q, find: Callable[[Q], Awaitable[RowPage[_T]]], count: Callable[[Q], Awaitable[int]]
) -> tuple[RowPage[_T], str]:
    """The page that the address asks for by `after` or `before`, and the number of all rows; see `written`.

    Raises InvalidParameter.
    """
    after, before = visit.query_id("after"), visit.query_id("before")
    if before:
        page = await find(replace(query, after_id=before, newest_first=not query.newest_first))
        rows = page.rows[::-1]
        if page.next_start:
            return RowPage(rows, False, rows[0].id, rows[-1].id), written(await count(query))
        after = 0  # not a whole page is left before it: show the first one
    page = await find(replace(query, after_id=after))
    if page.is_first and not page.next_start:
        return page, written(len(page.rows))
    previous = page.rows[0].id if after and page.rows else 0
    return replace(page, previous=previous), written(await count(query))


def links(
    page: str, asked: Mapping[str, str], found: RowPage[_T], parameter: str = "after"
) -> dict[str, Any]:
    """The addresses for the macro `pager`. `parameter` is the one that says where the next page begins."""
    return {
        "first": "" if found.is_first else address(page, asked),
        "previous": address(page, {**asked, "before": found.previous}) if found.previous else "",
        "next": address(page, {**asked, parameter: found.next_start}) if found.next_start else "",
        "csv": address(f"{page}.csv", asked) if found.rows else "",
    }


def written(count: int) -> str:
    """A number of rows, such as `337` or `10,000+`."""
    return f"{COUNTED_MAX:,}+" if count > COUNTED_MAX else f"{count:,}"


async def find_matches(
    visit: Visit,
    query: SearchQuery,
    read: ReadIds[_T],
    beginning: Callable[[], Awaitable[list[_T]]] | None = None,
) -> RowPage[_T]:
    """The page of a query; the row whose number is its text is the first of all. `beginning` has those that
    are found before the index is made."""
    number = id_in(query.text)
    found = await visit.store.search.find(query)
    ids = [id_ for id_ in (found.ids if found else ()) if id_ != number]
    if number is not None and not query.after_id:
        ids.insert(0, number)
    rows = {row.id: row for row in await read(tuple(ids))} if ids else {}
    if found is None:
        rows |= {row.id: row for row in await beginning()} if beginning else {}
        return RowPage(list(rows.values()), not query.after_id, is_built=False)
    listed = [rows[id_] for id_ in ids if id_ in rows]
    return RowPage(
        listed,
        not query.after_id,
        next_start=found.next_start,
        is_cut=found.is_cut,
        is_late=found.is_late,
    )
