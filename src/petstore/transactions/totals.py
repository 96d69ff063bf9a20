"""Sums over the whole store, for both databases. They read whole tables: never run them in a request."""

from __future__ import annotations

from collections.abc import Sequence
from zoneinfo import ZoneInfo

from petstore.core.durations import DAY_MS
from petstore.core.limits.usage import DailyUsage
from petstore.core.orders import OrderStatus
from petstore.core.pets import PetStatus
from petstore.core.totals import CATEGORIES_MAX, NAMED_MAX, WEEKS, NearLimit, Sales, Totals, weeks_at
from petstore.transactions.script import Script, statement
from petstore.transactions.usage import BANNED, deprecated_use

_PETS = statement("SELECT status, count(*) FROM pets GROUP BY status")
_CATEGORIES = statement(
    "SELECT category_id, count(*) AS animals, count(CASE status WHEN 'available' THEN 1 END),"
    " count(CASE status WHEN 'pending' THEN 1 END) FROM pets GROUP BY category_id"
    " ORDER BY animals DESC, category_id LIMIT $1"
)
_ORDERS = statement("SELECT status, count(*) FROM orders GROUP BY status")
# Each reads the orders once: at a million that is quicker than a look-up in an index for each week's.
_DELIVERED = "orders.status = 'delivered' AND ship_date_ms >= $1 AND ship_date_ms < $2"
_WEEKS = statement(
    f"SELECT CASE {' '.join(f'WHEN ship_date_ms < ${week + 3} THEN {week}' for week in range(WEEKS - 1))}"
    f" ELSE {WEEKS - 1} END AS week, count(*) FROM orders WHERE {_DELIVERED} GROUP BY week"
)
_SOLD = statement(
    "SELECT category_id, count(*) AS sold FROM orders LEFT JOIN pets ON pets.id = pet_id"
    f" WHERE {_DELIVERED} GROUP BY category_id ORDER BY sold DESC, category_id LIMIT $3"
)
_ACCOUNTS = statement(
    "SELECT count(*), count(closed_at_ms),"
    " count(CASE WHEN closed_at_ms IS NULL THEN suspended_at_ms END) FROM accounts"
)
# A sum of PostgreSQL's is a decimal number otherwise.
_TODAY = statement(
    "SELECT CAST(coalesce(sum(requests), 0) AS bigint), CAST(coalesce(sum(refused), 0) AS bigint),"
    " CAST(coalesce(sum(deprecated), 0) AS bigint) FROM usage_days WHERE day = $1"
)
_BANNED = statement(f"SELECT count(*) {BANNED}")
_NEAR_LIMIT = statement(
    "SELECT a.id, a.name, w.day_used, a.per_day FROM account_windows w JOIN accounts a ON a.id = w.account_id"
    " WHERE w.day = $1 AND a.closed_at_ms IS NULL AND a.per_day - w.day_used <= a.per_day / 10"
    " ORDER BY (a.per_day - w.day_used) * 1.0 / a.per_day, a.id LIMIT $2"
)


def totals(now_ms: int, zone: ZoneInfo) -> Script[Totals]:
    """Each sum is of its own moment."""
    today = now_ms // DAY_MS
    pets = yield _PETS, ()
    categories = yield _CATEGORIES, (CATEGORIES_MAX,)
    orders = yield _ORDERS, ()
    ((accounts, closed, suspended),) = yield _ACCOUNTS, ()
    ((*used,),) = yield _TODAY, (today,)
    ((banned,),) = yield _BANNED, (now_ms,)
    near_limit = yield _NEAR_LIMIT, (today, NAMED_MAX + 1)
    deprecated = yield from deprecated_use(now_ms)
    return Totals(
        dict.fromkeys(PetStatus, 0) | {PetStatus(status): count for status, count in pets},
        {
            category: {
                PetStatus.AVAILABLE: available,
                PetStatus.PENDING: pending,
                PetStatus.SOLD: animals - available - pending,
            }
            for category, animals, available, pending in categories
        },
        dict.fromkeys(OrderStatus, 0) | {OrderStatus(status): count for status, count in orders},
        {"active": accounts - closed - suspended, "suspended": suspended, "closed": closed},
        DailyUsage(today, *used),
        banned,
        [NearLimit(*row) for row in near_limit],
        deprecated.callers,
        (yield from _sales(weeks_at(now_ms, zone))),
    )


def _sales(weeks: Sequence[int]) -> Script[Sales]:
    begins, ends = weeks[:-1], weeks[-1]
    by_week = dict(map(tuple, (yield _WEEKS, (begins[0], ends, *begins[1:]))))
    by_category = yield _SOLD, (begins[0], ends, CATEGORIES_MAX)
    return Sales(
        {begin: by_week.get(week, 0) for week, begin in enumerate(begins)}, dict(map(tuple, by_category))
    )
