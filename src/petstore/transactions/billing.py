"""What bills are made of: accounts with their counts and the changes of their plans."""

from __future__ import annotations

import msgspec

from petstore.core.billing import BilledAccount, PlanChange
from petstore.core.limits.plans import LIMIT_COLUMNS
from petstore.core.limits.usage import DailyUsage
from petstore.transactions.rows import DAILY_USAGE, read_plan, select
from petstore.transactions.script import Repository, Script, Statement, read, statement

_ACCOUNTS = statement(
    f"SELECT id, name, created_at_ms, closed_at_ms, plan, {select(LIMIT_COLUMNS)} FROM accounts"
    " WHERE id > $1 ORDER BY id LIMIT $2"
)
# Account by account: SQLite would read all days of these, PostgreSQL soon these days of all accounts.
_COUNTS = f"SELECT account_id, {select(DAILY_USAGE)} FROM accounts a CROSS JOIN"
COUNTED = Statement(
    f"{_COUNTS} usage_days u ON u.account_id = a.id"
    " WHERE a.id BETWEEN ?1 AND ?2 AND day BETWEEN ?3 AND ?4 ORDER BY a.id, day",
    f"{_COUNTS} LATERAL (SELECT * FROM usage_days WHERE account_id = a.id AND day BETWEEN $3 AND $4 OFFSET 0)"
    " AS u WHERE a.id BETWEEN $1 AND $2 ORDER BY a.id, day",
)
_CHANGES = statement(
    "SELECT subject_id, at_ms, before FROM journal WHERE subject = 'account' AND subject_id BETWEEN $1 AND $2"
    " AND action = 'plan_changed' ORDER BY id"
)


class Billing(Repository):
    """Bills from a store."""

    @read
    def accounts(self, first: int, last: int, after: int, limit: int) -> Script[list[BilledAccount]]:
        """At most `limit` accounts with an id above `after`, by id, with their counts from `first` to `last`.

        Closed and suspended ones too. Days are UTC days since 1970-01-01.
        """
        # Before the changes: one that is committed meanwhile is undone from the plan that it made, or found.
        accounts = {
            row[0]: BilledAccount(row[0], row[1], read_plan(row[4:]), *row[2:4])
            for row in (yield _ACCOUNTS, (after, limit))
        }
        if accounts:
            bounds = (min(accounts), max(accounts))
            for account_id, *counts in (yield COUNTED, (*bounds, first, last)):
                if account_id in accounts:  # else deleted by hand, or added meanwhile
                    accounts[account_id].counted.append(DailyUsage(*counts))
            for account_id, at_ms, before in (yield _CHANGES, bounds):
                if account_id in accounts:
                    accounts[account_id].changes.append(PlanChange(at_ms, msgspec.json.decode(before)))
        return list(accounts.values())
