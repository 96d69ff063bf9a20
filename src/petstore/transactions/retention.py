"""Removes in small steps what is kept no longer: entries of the journal, the usage of days, and others.

A step records up to where events are gone in the transaction that removes their entries, and a page of events
(events.py) looks there after it has read: a follower gets each event, or EventsGone.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from petstore.core.events import Position
from petstore.core.values import INT64_MAX
from petstore.transactions.events import ADDED, BASE, IN_ORDER, OLDEST, renew_if_moved
from petstore.transactions.journal import first_since
from petstore.transactions.script import NO_EFFECT, Repository, Script, Statement, statement, write

# Rows that a step reads and removes at most: meanwhile it holds SQLite's lock.
STEP_MAX = 200

_NEWEST = "(SELECT max(id) FROM journal)"
# The service still reads who replaced a key (keys.py), and the plans of former days (billing.py). SQLite
# would give the identifier of the newest entry out again.
_LEAVES = (
    "NOT (subject = 'key' AND action = 'rotated' OR subject = 'account' AND action = 'plan_changed')"
    f" AND id <> {_NEWEST}"
)
# The position of the last entry before $1, unless it is the newest one.
_LAST = Statement(
    f"SELECT 0, id FROM journal WHERE id < ?1 AND id <> {_NEWEST} ORDER BY id DESC LIMIT 1",
    f"SELECT CASE WHEN id <= {BASE} THEN '0' ELSE transaction::text END, id FROM journal WHERE id < $1"
    f" AND id <> {_NEWEST} AND (id <= {BASE} OR transaction < {OLDEST}) ORDER BY id DESC LIMIT 1",
)
# Up to where entries are gone, and how far they are in the order of their identifiers.
_GONE = Statement(
    "SELECT 0, gone_id, 9223372036854775807 FROM data_set",
    "SELECT gone_transaction::text, gone_id, base_id FROM data_set",
    lock=" FOR UPDATE",
)
_MOVE = Statement(
    "UPDATE data_set SET is_whole = false, gone_id = ?2",
    "UPDATE data_set SET is_whole = false, gone_transaction = $1::text::xid8, gone_id = $2",
)
_NEXT_BY_ID = statement("SELECT 0, id, at_ms FROM journal WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3")
_REMOVE_BY_ID = statement(f"DELETE FROM journal WHERE id > $1 AND id <= $2 AND {_LEAVES} RETURNING 1")
_UP_TO = "(transaction, id) <= ($3::text::xid8, $4)"
_NEXT = Statement(
    "SELECT 1 WHERE false", f"SELECT transaction::text, id, at_ms {ADDED} AND {_UP_TO} {IN_ORDER} LIMIT $5"
)
_REMOVE = Statement("SELECT 1 WHERE false", f"DELETE {ADDED} AND {_UP_TO} AND {_LEAVES} RETURNING 1")
_OLD = {
    "usage_days": "DELETE FROM usage_days WHERE (account_id, day) IN"
    " (SELECT account_id, day FROM usage_days WHERE day < $1 LIMIT {}) RETURNING 1",
    "webhook_tries": "DELETE FROM webhook_tries WHERE id IN (SELECT id FROM webhook_tries"
    " WHERE fault IS NOT NULL AND at_ms < $1 ORDER BY at_ms LIMIT {}) RETURNING 1",
    # Nearly in the order of their times. A row of a clock that was ahead stays, though its id is low.
    "refusals": "DELETE FROM refusals WHERE id IN (SELECT id FROM refusals ORDER BY id LIMIT {})"
    " AND at_ms < $1 RETURNING 1",
    "webhooks": "DELETE FROM webhooks WHERE id IN (SELECT id FROM webhooks"
    " WHERE removed_at_ms < $1 AND url = '' ORDER BY id LIMIT {}) RETURNING 1",
}
# The number is in the text: one of a parameter PostgreSQL takes for a tenth of the table, and would read all.
REMOVE_OLD = {kind: statement(sql.format(STEP_MAX)) for kind, sql in _OLD.items()}
REMOVED_WEBHOOK = statement(
    "SELECT id FROM webhooks WHERE removed_at_ms IS NOT NULL AND url <> '' AND id >= $1 ORDER BY id LIMIT 1"
)
# A webhook's row stays as long as its entries: by it they are events of its account.
_EMPTY_WEBHOOK = statement("UPDATE webhooks SET url = '', description = '' WHERE id = $1")
# It may have millions of rows: up to where a step takes them, and the step.
_NEXT_TRIES = "SELECT id FROM webhook_tries WHERE"
PARTS = [
    (
        Statement(
            f"{_NEXT_TRIES} webhook_id = ?1 AND id > ?2 ORDER BY id LIMIT 1 OFFSET ?3",
            # Along the webhook's own index, however rare its attempts are.
            f"{_NEXT_TRIES} (webhook_id, id) > ($1, $2) AND (webhook_id, id) < ($1, {INT64_MAX})"
            " ORDER BY webhook_id, id LIMIT 1 OFFSET $3",
        ),
        statement("DELETE FROM webhook_tries WHERE webhook_id = $1 AND id > $2 AND id <= $3"),
    ),
    (
        statement(
            "SELECT at_ms FROM webhook_repetitions WHERE webhook_id = $1 AND at_ms > $2"
            " ORDER BY at_ms LIMIT 1 OFFSET $3"
        ),
        statement("DELETE FROM webhook_repetitions WHERE webhook_id = $1 AND at_ms > $2 AND at_ms <= $3"),
    ),
]


class Part(NamedTuple):
    """How far the removal of what a webhook had has come, in PARTS[number]."""

    webhook_id: int = 0
    number: int = 0
    up_to: int = -1


class Removed(NamedTuple):
    """What a step has removed, and the position up to which events are gone."""

    gone: Position
    entries: int


class Retention(Repository):
    """Times are Unix times in milliseconds, days UTC days since 1970-01-01."""

    async def last_before(self, at_ms: int) -> Position:
        """The position of the last entry before a time, the newest entry left out."""
        now_ms = self._clock.now_ms()
        await self._database.write(lambda: renew_if_moved(now_ms))
        return await self._database.read(_last_before(at_ms))

    @write(NO_EFFECT)
    def remove_entries(
        self, now_ms: int, since_ms: int, last: Position, expected_gone: Position | None
    ) -> Script[Removed | None]:
        """Remove the next entries up to `last`, and none after one of `since_ms` or later: where a clock was
        wrong, `last` may be younger.

        None: none is left, or another process has removed some since the step that went to
        `expected_gone`, and goes on.
        """
        ((transaction, gone_id, base_id),) = yield _GONE, ()
        gone = Position(int(transaction), gone_id)
        if gone >= last or expected_gone not in (None, gone):
            return None
        if gone.transaction == 0 and gone.id < base_id:
            until = Position(0, base_id if last.transaction else last.id)
            rows = yield _NEXT_BY_ID, (gone.id, until.id, STEP_MAX)
        else:
            until = last
            rows = yield _NEXT, (str(gone.transaction), gone.id, str(last.transaction), last.id, STEP_MAX)
        old = list(takewhile(lambda row: not since_ms <= row[2] <= now_ms, rows))
        if rows and not old:
            return None
        end = Position(int(old[-1][0]), old[-1][1]) if old else until
        if end.transaction == 0:
            removed = yield _REMOVE_BY_ID, (gone.id, end.id)
        else:
            removed = yield _REMOVE, (str(gone.transaction), gone.id, str(end.transaction), end.id)
        yield _MOVE, (str(end.transaction), end.id)
        return Removed(end, len(removed))

    @write(NO_EFFECT)
    def remove(self, _now_ms: int, kind: str, before: int) -> Script[int]:
        """Remove some rows: `usage_days` before a day, and before a time `webhook_tries` that failed,
        `refusals`, or `webhooks` that were removed. How many, 0 when none is left."""
        return len((yield REMOVE_OLD[kind], (before,)))

    @write(NO_EFFECT)
    def remove_webhook(self, _now_ms: int, after: Part) -> Script[Part | None]:
        """Remove some of what the next webhook that has the mark of its removal had, after a part:
        PostgreSQL would pass by all that is gone. Up to where; None, where there is no such webhook."""
        for (webhook_id,) in (yield REMOVED_WEBHOOK, (after.webhook_id,)):
            begun = after if after.webhook_id == webhook_id else Part(webhook_id)
            for index in range(begun.number, len(PARTS)):
                start, (find, remove) = begun.up_to if index == begun.number else Part().up_to, PARTS[index]
                rows = yield find, (webhook_id, start, STEP_MAX - 1)
                last = rows[0][0] if rows else INT64_MAX
                yield remove, (webhook_id, start, last)
                if rows:
                    return Part(webhook_id, index, last)
            yield _EMPTY_WEBHOOK, (webhook_id,)
            return Part(webhook_id + 1)
        return None


def _last_before(at_ms: int) -> Script[Position]:
    first_id = yield from first_since(at_ms)
    rows = yield _LAST, (first_id,)
    return Position(int(rows[0][0]), rows[0][1]) if rows else Position()
