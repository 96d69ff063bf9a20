"""Pages of a list along its identifiers, in both directions, or of the rows that have certain words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from petstore.console.visit import Visit, address
from petstore.core.search import id_in
from petstore.core.values import COUNTED_MAX
from petstore.transactions.search import SearchQuery


class Row(Protocol):
    """Anything with an identifier."""

    @property
    def id(self) -> int: ...


T = TypeVar("T", bound=Row)
# A page after an identifier, 0 for the first one, with the newest first or the oldest; whether it has more.
Read = Callable[[int, bool], Awaitable[tuple[list[T], bool]]]
# The rows of these identifiers, in any order, that match the other filters.
ReadIds = Callable[[tuple[int, ...]], Awaitable[list[T]]]


class Turned(msgspec.Struct, Generic[T], frozen=True):
    """A page. `previous` is its first identifier, `following` its last or a name; 0 without such a page."""

    rows: list[T]
    is_first: bool = True
    previous: int = 0
    following: int | str = 0

    @property
    def is_whole(self) -> bool:
        """Whether the page is the whole list."""
        return self.is_first and not self.following


async def turn(visit: Visit, read: Read[T], newest_first: bool) -> Turned[T]:
    """The page that the query's `after` or `before` asks for. Raises InvalidParameter."""
    after, before = visit.place("after"), visit.place("before")
    if before:
        rows, has_more = await read(before, not newest_first)
        if has_more:
            return Turned(rows[::-1], False, rows[-1].id, rows[0].id)
        after = 0  # not a whole page is left before it: show the first one
    rows, has_more = await read(after, newest_first)
    return Turned(rows, not after, rows[0].id if after and rows else 0, rows[-1].id if has_more else 0)


def links(page: str, asked: Mapping[str, str], turned: Turned[T], place: str = "after") -> dict[str, Any]:
    """The addresses for the macro `pager`. `place`: the parameter that says where the next page begins."""
    return {
        "first": "" if turned.is_first else address(page, asked),
        "previous": address(page, {**asked, "before": turned.previous}) if turned.previous else "",
        "next": address(page, {**asked, place: turned.following}) if turned.following else "",
        "csv": address(f"{page}.csv", asked) if turned.rows else "",
    }


async def total(turned: Turned[T], count: Callable[[], Awaitable[int]]) -> str:
    """The number of all rows; see `written`."""
    return written(len(turned.rows) if turned.is_whole else await count())


def written(count: int) -> str:
    """A number of rows, such as `337` or `10,000+`."""
    return f"{COUNTED_MAX:,}+" if count > COUNTED_MAX else f"{count:,}"


class Matches(msgspec.Struct, Generic[T], frozen=True):
    """A page of rows that have words, and where the next one begins; nothing at the end.

    `is_cut`, `is_late`: as of transactions.search.Found. Without `is_built` they are those whose texts begin
    with the words.
    """

    rows: list[T] = []
    further: int | str = 0
    is_cut: bool = False
    is_late: bool = False
    is_built: bool = True


async def find_matches(
    visit: Visit,
    query: SearchQuery,
    read: ReadIds[T],
    beginning: Callable[[], Awaitable[list[T]]] | None = None,
) -> Matches[T]:
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
        return Matches(list(rows.values()), is_built=False)
    listed = [rows[id_] for id_ in ids if id_ in rows]
    return Matches(listed, found.further, found.is_cut, found.is_late)
