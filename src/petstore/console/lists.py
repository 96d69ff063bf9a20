"""Pages of a list along its identifiers, in both directions, and how many rows there are in all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from petstore.console.visit import Visit, address
from petstore.core.values import COUNTED_MAX


class Row(Protocol):
    """Anything with an identifier."""

    @property
    def id(self) -> int: ...


T = TypeVar("T", bound=Row)
# A page after an identifier, 0 for the first one, with the newest first or the oldest; whether it has more.
Read = Callable[[int, bool], Awaitable[tuple[list[T], bool]]]


class Turned(msgspec.Struct, Generic[T], frozen=True):
    """A page. `previous` is its first identifier, `following` its last; 0 where no page is there."""

    rows: list[T]
    is_first: bool = True
    previous: int = 0
    following: int = 0

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


def links(page: str, asked: Mapping[str, str], turned: Turned[T]) -> dict[str, Any]:
    """The addresses for the macro `pager`."""
    return {
        "first": "" if turned.is_first else address(page, asked),
        "previous": address(page, {**asked, "before": turned.previous}) if turned.previous else "",
        "next": address(page, {**asked, "after": turned.following}) if turned.following else "",
        "csv": address(f"{page}.csv", asked) if turned.rows else "",
    }


async def total(turned: Turned[T], count: Callable[[], Awaitable[int]]) -> str:
    """The number of all rows, such as `337` or `10,000+`."""
    found = len(turned.rows) if turned.is_whole else await count()
    return f"{COUNTED_MAX:,}+" if found > COUNTED_MAX else f"{found:,}"
