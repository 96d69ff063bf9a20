"""Pages of accounts by name, for both databases: each walks one index and reads a bounded number of rows.

Names are in the order of their lower-case letters; two that differ by case alone are neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from petstore.core.accounts import AccountPage, AccountQuery, AccountUse, can_begin_name, read_account_id
from petstore.core.durations import DAY_MS
from petstore.core.values import COUNTED_MAX
from petstore.transactions.query import Query
from petstore.transactions.rows import ACCOUNT, read_account, select
from petstore.transactions.script import Script, Statement, padded

ACCOUNTS_SCANNED_MAX = 10_000
# A window ahead of today is today's: the clock was set back.
_ACCOUNTS = (
    f"SELECT {select(ACCOUNT)}, CASE WHEN day >= {{}} THEN day_used ELSE 0 END"
    " FROM accounts LEFT JOIN account_windows ON account_id = id"
)
_ORDER = "FOLDED, name"
# As the indexes of migrations 0005 and 0008 have them.
_STATES = {
    "active": "suspended_at_ms IS NULL AND closed_at_ms IS NULL",
    "suspended": "suspended_at_ms IS NOT NULL AND closed_at_ms IS NULL",
    "closed": "closed_at_ms IS NOT NULL",
}
_ONE = f"ORDER BY {_ORDER} LIMIT 1 OFFSET {{}}"
_LAST = "~"  # after all characters of a name


class _Names(Query):
    """Conditions in which FOLDED is the name in lower case."""

    def select(self, columns: str, end: str, *values: object) -> tuple[Statement, tuple[object, ...]]:
        page, arguments = super().select(columns, end, *values)
        folded = (
            page.sqlite.replace("FOLDED", "name COLLATE NOCASE"),
            page.postgres.replace("FOLDED", "lower(name)"),
        )
        return Statement(*folded), arguments


def page_of_accounts(now_ms: int, query: AccountQuery) -> Script[AccountPage]:
    """The accounts that match, of a bounded number that is read. What can't begin a name finds none."""
    if not (can_begin_name(query.search) and can_begin_name(query.after)):
        return AccountPage([], None)
    today = now_ms // DAY_MS
    by_id = yield from _by_id(query, today)
    conditions = _Names()
    # SQLite begins its walk at the first bound, not at the pair's.
    begin, end = max(query.search.lower(), query.after.lower()), query.search.lower() + _LAST
    conditions.add("FOLDED >= {} AND FOLDED < {}", begin, end)
    if query.after:
        conditions.add("(FOLDED, name) > ({}, {})", query.after.lower(), query.after)
    stop: str | None = None
    if not _has_index(query):
        for (stop,) in (yield conditions.select("SELECT name FROM accounts", _ONE, ACCOUNTS_SCANNED_MAX - 1)):
            conditions.add("(FOLDED, name) <= ({}, {})", stop.lower(), stop)
    order = _filter(conditions, query)
    rows = yield conditions.select(_ACCOUNTS, f"ORDER BY {order} LIMIT {{}}", today, query.limit + 1)
    found = [_read(row) for row in rows]
    after = found[query.limit - 1].account.name if len(found) > query.limit else stop
    others = [each for each in found[: query.limit] if each not in by_id]
    return AccountPage(others if query.after else [*by_id, *others], after)


def count_accounts(query: AccountQuery) -> Script[int | None]:
    """All accounts of a state or a plan, one more than COUNTED_MAX for all above; None where no index has
    them."""
    if not _has_index(query):
        return None
    conditions = _Names()
    end = f"ORDER BY {_filter(conditions, query)} LIMIT {{}}) AS found"
    rows = yield conditions.select("SELECT count(*) FROM (SELECT 1 FROM accounts", end, COUNTED_MAX + 1)
    return int(rows[0][0])


def _filter(conditions: Query, query: AccountQuery) -> str:
    """Ask for the plan and the state; returns the order, of the index that has them."""
    if query.plan:
        conditions.add("plan = {}", query.plan)
    if query.state:
        conditions.add(_STATES[query.state])
    # Ordered by the plan too, PostgreSQL uses the index by plan.
    return _ORDER if query.state or not query.plan else f"plan, {_ORDER}"


def _has_index(query: AccountQuery) -> bool:
    """Whether an index has the accounts of this state and plan alone."""
    return query.state != "active" and not (query.state and query.plan)


def uses_of(now_ms: int, ids: tuple[int, ...]) -> Script[list[AccountUse]]:
    """These accounts, of those that there are, in any order."""
    if not ids:  # PostgreSQL takes no empty list
        return []
    conditions = _Names()
    conditions.among("id", padded(ids))
    return [_read(row) for row in (yield conditions.select(_ACCOUNTS, "", now_ms // DAY_MS))]


def _by_id(query: AccountQuery, today: int) -> Script[list[AccountUse]]:
    """The account whose id is searched for, if the other filters let it through."""
    number = read_account_id(query.search)
    if number is None:
        return []
    conditions = _Names()
    conditions.add("id = {}", number)
    found = [_read(row) for row in (yield conditions.select(_ACCOUNTS, "", today))]
    return [
        each
        for each in found
        if query.state in (None, each.account.state) and query.plan in (None, each.account.plan.name)
    ]


def _read(row: Sequence[Any]) -> AccountUse:
    return AccountUse(read_account(row[:-1]), row[-1])
