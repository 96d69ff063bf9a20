"""Bans, used-up days, keys that expire soon and calls of an operation that ends, for both databases: an
entry of the journal for each fact.

They change nothing else, and are found in the saved counters and the keys. The table `facts` has those with
an entry, each with the moment that it is of, so that no other process and no restart writes one again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from petstore.core.durations import DAY_MS, HOUR_MS, SECOND_MS
from petstore.core.journal import SERVICE
from petstore.core.limits.plans import WINDOWS
from petstore.core.limits.usage import DEPRECATED, reminder_days
from petstore.core.moments import iso_day, iso_moment
from petstore.core.values import IDS_MAX
from petstore.transactions.accounts import IS_IN_USE
from petstore.transactions.journal import record
from petstore.transactions.rows import placeholders
from petstore.transactions.script import (
    NO_EFFECT,
    Repository,
    Script,
    Statement,
    padded,
    read,
    removal,
    remove_all,
    statement,
    write,
)
from petstore.transactions.usage import BANNED_SINCE

APPROACHING_PERCENT = 80
EXPIRING_DAYS = (14, 3)
_APPROACHING, _REACHED = "limit_approaching", "limit_reached"
_DEPRECATED_USED = "deprecated_used"
_DAY = WINDOWS[-1]
# A ban that ended longer ago is not reported.
_BANS_MS = DAY_MS
# How long a day's limits are news after its end: what was counted in its last seconds is saved later.
_LATE_MS = HOUR_MS
# Longer than a fact can be found again.
_KEPT_MS = 3 * DAY_MS
_WRITTEN_AT_A_TIME = 100

_STATE = Statement("SELECT data_version FROM pragma_data_version", "SELECT pg_current_snapshot()::text")
_BANS = statement(f"SELECT k.id, s.banned_until_ms {BANNED_SINCE} AND {IS_IN_USE}")


def _used(source: str) -> Statement:
    """The accounts that have used enough of the day $1."""
    return statement(
        f"SELECT a.id, a.{_DAY.limit_column}, u.used FROM ({source}) AS u"
        " JOIN accounts a ON a.id = u.account_id WHERE u.day = $1"
        f" AND u.used * 100 >= a.{_DAY.limit_column} * {APPROACHING_PERCENT} AND {IS_IN_USE}"
    )


_USED_TODAY = _used(
    f"SELECT account_id, {_DAY.opened_column} AS day, {_DAY.used_column} AS used FROM account_windows"
)
# Yesterday's windows give way to today's.
_USED_YESTERDAY = _used("SELECT account_id, day, requests AS used FROM usage_days")
# A key that was refused by the day may have been refused since by a window that ends after it.
_LIMITED = (
    "SELECT k.account_id FROM api_keys k JOIN key_standings s ON s.key_id = k.id"
    " WHERE s.refused_reset_at >= $1 AND k.account_id IN ({})"
)
# Who makes a key knows its end: it is news for a key that is older than that.
_EXPIRING = statement(
    "SELECT k.id, k.label, k.expires_at_ms FROM api_keys k JOIN accounts a ON a.id = k.account_id"
    " WHERE k.expires_at_ms > $1 AND k.expires_at_ms <= $2 AND k.created_at_ms < k.expires_at_ms - $3"
    f" AND k.revoked_at_ms IS NULL AND {IS_IN_USE}"
)
# Along the index of days with such calls.
_DEPRECATED = statement(
    "SELECT a.id, CAST(sum(u.deprecated) AS bigint) FROM usage_days u JOIN accounts a ON a.id = u.account_id"
    f" WHERE u.deprecated > 0 AND u.day >= $1 AND {IS_IN_USE} GROUP BY a.id"
)
_FIND = statement("SELECT of_ms, kind, subject FROM facts WHERE of_ms BETWEEN $1 AND $2")
_ADD = statement(
    "INSERT INTO facts (of_ms, kind, subject) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING of_ms"
)
_FORGET = removal("facts", "of_ms, kind, subject", "of_ms < $1")


class NewFact(NamedTuple):
    """A fact to be recorded: its moment and kind in the table, and its entry."""

    of_ms: int  # the end of the ban or the key, the beginning of the day
    kind: str
    subject: str
    subject_id: int
    action: str
    before: Mapping[str, object] | None
    after: Mapping[str, object]

    @property
    def key(self) -> tuple[int, str, int]:
        return self.of_ms, self.kind, self.subject_id


class Facts(Repository):
    """The facts of a store. Several processes may record them at once: each fact has one entry."""

    @read
    def state(self) -> Script[object]:
        """The database's state: while it is the same, nothing was written."""
        return (yield _STATE, ())[0][0]

    async def record_counted(self) -> None:
        """Write the entries of bans, and of the limits of the current day."""
        await self._record(await self._counted(self._clock.now_ms()))

    async def record_timed(self, removal_at_ms: int) -> None:
        """Write the entries of keys that expire soon, of a day that has just ended, and of calls of the
        operation that ends at `removal_at_ms`; forget old facts."""
        await self._record(await self._timed(self._clock.now_ms(), removal_at_ms))
        await remove_all(self._database, _FORGET, self._clock.now_ms() - _KEPT_MS)

    @read
    def _counted(self, now_ms: int) -> Script[list[NewFact]]:
        bans = yield from _bans(now_ms)
        return bans + (yield from _limits(now_ms // DAY_MS, _USED_TODAY))

    @read
    def _timed(self, now_ms: int, removal_at_ms: int) -> Script[list[NewFact]]:
        found = yield from _expiring(now_ms)
        found += yield from _deprecated(now_ms, removal_at_ms)
        if now_ms % DAY_MS < _LATE_MS:
            found += yield from _limits(now_ms // DAY_MS - 1, _USED_YESTERDAY)
        return found

    async def _record(self, facts: list[NewFact]) -> None:
        """Record facts in an order in which no two processes wait for each other."""
        facts.sort(key=lambda each: each.key)
        for first in range(0, len(facts), _WRITTEN_AT_A_TIME):
            await self._write(facts[first : first + _WRITTEN_AT_A_TIME])

    @write(NO_EFFECT)
    def _write(self, now_ms: int, facts: list[NewFact]) -> Script[None]:
        for each in facts:
            if (yield _ADD, each.key):
                yield from record(now_ms, SERVICE, *each[2:])


def _bans(now_ms: int) -> Script[list[NewFact]]:
    before = {"bannedUntil": None}
    found = [
        NewFact(
            until_ms, "key.banned", "key", key_id, "banned", before, {"bannedUntil": iso_moment(until_ms)}
        )
        for key_id, until_ms in (yield _BANS, (now_ms - _BANS_MS,))
    ]
    return (yield from _unrecorded(found))


def _limits(day: int, used_on: Statement) -> Script[list[NewFact]]:
    of_ms, end_ms = day * DAY_MS, (day + 1) * DAY_MS
    rows = yield used_on, (day,)
    recorded = (yield from _recorded(of_ms, of_ms)) if rows else set()
    near = [row for row in rows if (of_ms, _APPROACHING, row[0]) not in recorded]
    full = [row for row in rows if row[2] >= row[1] and (of_ms, _REACHED, row[0]) not in recorded]
    refused = yield from _refused([row[0] for row in full], end_ms // SECOND_MS)
    reset_at = iso_moment(end_ms)
    return [
        NewFact(
            of_ms, kind, "account", row[0], kind, None, {"limit": row[1], "used": row[2], "resetAt": reset_at}
        )
        for kind, those in ((_APPROACHING, near), (_REACHED, full))
        for row in those
        if kind == _APPROACHING or row[0] in refused
    ]


def _refused(account_ids: list[int], reset_at: int) -> Script[set[int]]:
    """The accounts of which a key was refused until then, a Unix time in seconds, or later."""
    refused: set[int] = set()
    for first in range(0, len(account_ids), IDS_MAX):
        wanted = padded(tuple(account_ids[first : first + IDS_MAX]))
        rows = yield statement(_LIMITED.format(placeholders(len(wanted), 2))), (reset_at, *wanted)
        refused.update(account_id for (account_id,) in rows)
    return refused


def _expiring(now_ms: int) -> Script[list[NewFact]]:
    """The facts of expiring keys: for each number of days, the keys above the next smaller one."""
    found = []
    for days, above in zip(EXPIRING_DAYS, (*EXPIRING_DAYS[1:], 0), strict=True):
        soon = now_ms + above * DAY_MS, now_ms + days * DAY_MS, days * DAY_MS
        for key_id, label, expires_at_ms in (yield _EXPIRING, soon):
            after = {"label": label, "expiresAt": iso_moment(expires_at_ms)}
            found.append(
                NewFact(expires_at_ms, f"key.expiring {days}", "key", key_id, "expiring", None, after)
            )
    return (yield from _unrecorded(found))


def _deprecated(now_ms: int, removal_at_ms: int) -> Script[list[NewFact]]:
    """The facts of calls of the deprecated operation that are not recorded yet: one a month in the last year,
    one a week in the last month."""
    begins, ends = reminder_days(now_ms // DAY_MS, removal_at_ms // DAY_MS)
    rows = (yield _DEPRECATED, (begins,)) if begins < ends else []
    of_ms = ends * DAY_MS  # a fact is kept until after its moment
    kind = f"{_DEPRECATED_USED} {ends - begins}"  # a month and its last week may end together
    same = {"operation": DEPRECATED, "since": iso_day(begins), "endsAt": iso_moment(removal_at_ms)}
    found = [
        NewFact(of_ms, kind, "account", account_id, _DEPRECATED_USED, None, same | {"calls": calls})
        for account_id, calls in rows
    ]
    return (yield from _unrecorded(found))


def _unrecorded(found: list[NewFact]) -> Script[list[NewFact]]:
    if not found:
        return []
    moments = [each.of_ms for each in found]
    recorded = yield from _recorded(min(moments), max(moments))
    return [each for each in found if each.key not in recorded]


def _recorded(first_ms: int, last_ms: int) -> Script[set[tuple[int, str, int]]]:
    return {tuple(row) for row in (yield _FIND, (first_ms, last_ms))}
