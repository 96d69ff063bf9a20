"""Pages of orders, for both databases: each statement walks one index from the page's first order on."""

from __future__ import annotations

from petstore.core.orders import OPEN, OrderQuery
from petstore.core.values import INT64_MAX
from petstore.transactions.rows import ORDER, select
from petstore.transactions.script import Statement, padded, statement

ORDERS = f"SELECT {select(ORDER)} FROM orders"


def page_of(query: OrderQuery) -> tuple[Statement, tuple[object, ...]]:
    """The statement of a page and its parameters; it reads one order too many."""
    after = query.after_id or (INT64_MAX if query.newest_first else 0)
    arguments: list[object] = [after, query.limit + 1]
    places: dict[str, int] = {}
    if query.account_id is not None:
        arguments.append(query.account_id)
        places["account_id"] = len(arguments)
    first_status = len(arguments) + 1
    statuses = (query.status,) if query.status else OPEN if query.open_only else ()
    arguments += [status.value for status in statuses]
    status_places = list(range(first_status, first_status + len(statuses)))
    if query.ids is not None:
        ids = padded(query.ids)
        id_places = [len(arguments) + at for at, _ in enumerate(ids, start=1)]
        return _by_id(query, places, status_places, id_places), (*arguments, *ids)
    walks = [_walk(query, {**places, "status": place}) for place in status_places]
    if len(walks) > 1:
        return _merged(query, walks), tuple(arguments)
    return walks[0] if walks else _walk(query, places), tuple(arguments)


def _direction(query: OrderQuery) -> tuple[str, str, str]:
    """The comparison with the place before the page, its opposite, and the order."""
    return ("<", ">", " DESC") if query.newest_first else (">", "<", "")


def _by_id(query: OrderQuery, places: dict[str, int], statuses: list[int], ids: list[int]) -> Statement:
    beyond, _, order = _direction(query)
    conditions = [f"id {beyond} $1"]
    # The additions keep the other indexes out of it: identifiers are the narrower way in.
    conditions += [f"account_id + 0 = ${place}" for place in places.values()]
    if statuses:
        conditions.append(f"status || '' IN ({_listed(statuses)})")
    conditions.append(f"id IN ({_listed(ids) or 'NULL'})")
    return statement(f"{ORDERS} WHERE {' AND '.join(conditions)} ORDER BY id{order} LIMIT $2")


def _listed(places: list[int]) -> str:
    return ", ".join(f"${place}" for place in places)


def _walk(query: OrderQuery, places: dict[str, int]) -> Statement:
    """Along the index of these columns.

    Where PostgreSQL expects a value to be frequent, it prefers the index by `id`, and passes over all orders
    if they are elsewhere. An order by the columns too leaves it one index.
    """
    beyond, opposite, order = _direction(query)
    equal = "".join(f"{column} = ?{place} AND " for column, place in places.items())
    sqlite = f"{ORDERS} WHERE {equal}id {beyond} ?1 ORDER BY id{order} LIMIT ?2"
    if not places:
        return Statement(sqlite, f"{ORDERS} WHERE id {beyond} $1 ORDER BY id{order} LIMIT $2")
    columns, values = ", ".join(places), _listed(list(places.values()))
    ordered = ", ".join(f"{column}{order}" for column in (*places, "id"))
    return Statement(
        sqlite,
        f"{ORDERS} WHERE ({columns}, id) {beyond} ({values}, $1) AND ({columns}) {opposite}= ({values})"
        f" ORDER BY {ordered} LIMIT $2",
    )


def _merged(query: OrderQuery, walks: list[Statement]) -> Statement:
    """SQLite merges as it goes; PostgreSQL sorts at most a page of each walk."""
    _, _, order = _direction(query)
    unlimited = [walk.sqlite.partition(" ORDER BY")[0] for walk in walks]
    limited = [f"({walk.postgres})" for walk in walks]
    return Statement(
        f"{' UNION ALL '.join(unlimited)} ORDER BY id{order} LIMIT ?2",
        f"SELECT * FROM ({' UNION ALL '.join(limited)}) AS merged ORDER BY id{order} LIMIT $2",
    )
