"""One builder of SELECTs for both databases: conditions with their values, and pages along an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, product
from typing import TypeVar

from msgspec.structs import replace

from petstore.core.orders import OrderQuery
from petstore.core.pets import PetQuery
from petstore.core.values import COUNTED_MAX, INT64_MAX
from petstore.transactions.rows import placeholders
from petstore.transactions.script import Script, Statement, padded, statement

Q = TypeVar("Q", PetQuery, OrderQuery)


class Query:
    """The conditions that rows have to meet, all of them, with their values."""

    def __init__(self) -> None:
        self.text = "true"
        self.values: list[object] = []

    def put(self, value: object) -> str:
        """The placeholder of a further value."""
        self.values.append(value)
        return f"${len(self.values)}"

    def add(self, condition: str, *values: object) -> None:
        """Each `{}` of the condition is one of the values."""
        self.text += " AND " + condition.format(*map(self.put, values))

    def among(self, column: str, values: Sequence[object]) -> None:
        """The column has one of the values. PostgreSQL takes no empty list."""
        self.add(f"{column} IN ({', '.join(['{}'] * len(values))})", *values)

    def select(self, columns: str, end: str, *values: object) -> tuple[Statement, tuple[object, ...]]:
        """A SELECT of these rows, which later conditions do not change; `values` are for both texts."""
        added = [f"${len(self.values) + number}" for number, _ in enumerate(values, start=1)]
        sql = f"{columns} WHERE {self.text} {end}".format(*added)
        return statement(sql), (*self.values, *values)


def count_up_to(
    page_of: Callable[[Q], tuple[Statement, tuple[object, ...]]], queries: Iterable[Q]
) -> Script[int]:
    """The rows of all queries, wherever their pages begin; one more than COUNTED_MAX for all above. Each is a
    walk along one index: merged, their order would have to be made."""
    found = 0
    for query in queries:
        page, arguments = page_of(replace(query, limit=COUNTED_MAX - found, after_id=0))
        count = "SELECT count(*) FROM ({}) AS found"
        rows = yield Statement(count.format(page.sqlite), count.format(page.postgres)), arguments
        found += rows[0][0]
        if found > COUNTED_MAX:
            break
    return found


def page_by_id(
    table: str, query: PetQuery | OrderQuery, equal: Mapping[str, Sequence[object]]
) -> tuple[Statement, tuple[object, ...]]:
    """A page in the order of `id`, and its arguments; it reads one row too many.

    `table` is a SELECT without conditions; `equal` has the values that a column may have. There is an index
    of these columns and `id`, along which a page with several values is a walk for each.
    """
    after = query.after_id or (INT64_MAX if query.newest_first else 0)
    ids = None if query.ids is None else padded(query.ids)
    counts = tuple((column, len(values)) for column, values in equal.items())
    page = _page_by_id(table, counts, None if ids is None else len(ids), query.newest_first)
    return page, (after, query.limit + 1, *chain(*equal.values()), *(ids or ()))


@cache
def _page_by_id(
    table: str, counts: tuple[tuple[str, int], ...], ids: int | None, newest_first: bool
) -> Statement:
    """A page's SELECT: `$1` is the id before the page, `$2` its length; values by column and ids follow."""
    beyond, order = ("<", " DESC") if newest_first else (">", "")
    listed: dict[str, list[str]] = {}
    first = 3
    for column, count in counts:
        listed[column] = [f"${number}" for number in range(first, first + count)]
        first += count
    if ids is None:
        chosen = [dict(zip(listed, each, strict=True)) for each in product(*listed.values())]
        walks = [_walk(table, equal, newest_first) for equal in chosen]
        return walks[0] if len(walks) == 1 else _merged(walks, order)
    # No index has such an expression: identifiers are the narrower way in.
    others = [f"coalesce({column}, {column}) IN ({', '.join(each)})" for column, each in listed.items()]
    conditions = " AND ".join([f"id {beyond} $1", *others, f"id IN ({placeholders(ids, first) or 'NULL'})"])
    return statement(f"{table} WHERE {conditions} ORDER BY id{order} LIMIT $2")


def _walk(table: str, equal: dict[str, str], newest_first: bool) -> Statement:
    """A walk along the index of these columns.

    Where PostgreSQL expects a value to be frequent, it prefers the index by `id`, and passes over millions of
    rows if they are elsewhere. An order by the columns too leaves it one index, where none has a constant: `=
    ANY` does not count as one. It estimates a comparison of rows by the first column: one without "or equal"
    looks as if the value had none, so that all are sorted. And it ends a walk by their first column alone.
    """
    beyond, opposite, order = ("<", ">", " DESC") if newest_first else (">", "<", "")
    conditions = [*(f"{column} = {placeholder}" for column, placeholder in equal.items()), f"id {beyond} $1"]
    page = statement(f"{table} WHERE {' AND '.join(conditions)} ORDER BY id{order} LIMIT $2")
    if not equal:
        return page
    *others, (last, value) = equal.items()
    within = "".join(f" AND {column} = ANY(ARRAY[{placeholder}]::bigint[])" for column, placeholder in others)
    ordered = ", ".join(f"{column}{order}" for column in (*equal, "id"))
    return Statement(
        page.sqlite,
        f"{table} WHERE ({last}, id) {beyond}= ({value}, $1) AND id <> $1 AND {last} {opposite}= {value}"
        f"{within} ORDER BY {ordered} LIMIT $2",
    )


def _merged(walks: list[Statement], order: str) -> Statement:
    """SQLite merges as it goes; PostgreSQL sorts at most a page of each walk."""
    unlimited = [walk.sqlite.partition(" ORDER BY")[0] for walk in walks]
    limited = [f"({walk.postgres})" for walk in walks]
    end = f"ORDER BY id{order} LIMIT"
    return Statement(
        f"{' UNION ALL '.join(unlimited)} {end} ?2",
        f"SELECT * FROM ({' UNION ALL '.join(limited)}) AS merged {end} $2",
    )
