"""Who delivers the webhooks of a store, and the outcomes, for both databases.

A deliverer renews its row, and the row of each webhook names its owner. When a deliverer dies, its webhooks
are free after LEASE_MS. A result is refused if the webhook had another owner, or none, since it was read.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import astuple

from petstore.core.deliverers import OwnedWebhook, Settled
from petstore.core.durations import SECOND_MS
from petstore.core.events import Bookmark, Event, Position
from petstore.core.journal import SERVICE
from petstore.core.values import INT64_MAX
from petstore.core.webhooks import SUCCESSES_KEPT, Repetition, WebhookHealth
from petstore.transactions.accounts import IS_IN_USE
from petstore.transactions.deliveries import event_for
from petstore.transactions.events import ADDED, BASE, IN_ORDER, READ_GONE, newest_bookmark
from petstore.transactions.jobs import lease_ended
from petstore.transactions.rows import (
    ATTEMPT,
    BOOKMARK,
    REPETITION,
    bookmark_values,
    read_bookmark_row,
    select,
)
from petstore.transactions.script import (
    NO_EFFECT,
    Repository,
    Script,
    Statement,
    json_text,
    read,
    rows_of,
    statement,
    timed,
    write,
)
from petstore.transactions.webhooks import IS_THERE, disable, get_webhook

LEASE_MS = 30 * SECOND_MS
REPETITIONS_READ = 1_000
# How many are given back, and how many taken, at a time: on SQLite other writes wait meanwhile.
_RELEASED_AT_A_TIME = 100
_TAKEN_AT_A_TIME = 4_000

_IN_USE = (
    f"w.{IS_THERE} AND w.disabled IS NULL"
    f" AND EXISTS (SELECT 1 FROM accounts a WHERE a.id = w.account_id AND {IS_IN_USE})"
)
ANY = statement(f"SELECT 1 FROM webhooks w WHERE {_IN_USE} LIMIT 1")

_RENEW = timed(
    f"INSERT INTO deliverers (owner, deadline_ms) VALUES ($2, {{now}} + {LEASE_MS})"
    " ON CONFLICT (owner) DO UPDATE SET deadline_ms = excluded.deadline_ms"
)
_END_DEAD = timed(f"DELETE FROM deliverers WHERE {lease_ended(LEASE_MS)}")
_END_OTHERS = statement("DELETE FROM deliverers WHERE owner <> $1")
# All deliverers, all webhooks that get something, and its own of these.
_COUNT = statement(
    "SELECT (SELECT count(*) FROM deliverers), count(*), count(*) FILTER (WHERE w.owner = $1)"
    f" FROM webhooks w WHERE {_IN_USE}"
)
_RELEASE = statement("UPDATE webhooks SET owner = '' WHERE id = $1 AND owner = $2")
_FREE = (
    f"SELECT id FROM webhooks w WHERE w.id > $3 AND {_IN_USE}"
    " AND w.owner NOT IN (SELECT owner FROM deliverers) ORDER BY id LIMIT $2"
)
# In a copy webhooks go on at the same bookmark, as `nearest_bookmark` says.
_COPIED = (
    "after_transaction = 0 AND after_id >= coalesce((SELECT max(id) FROM journal"
    " WHERE subject = 'store' AND subject_id = 0 AND action = 'restored'), 0)"
)
# A deliverer that stood still may take one back that another one had meanwhile: what it knows is old.
_TAKE_FREE = (
    "UPDATE webhooks SET owner = $1, revision = revision + 1,"
    f" data_set = CASE WHEN {_COPIED} THEN (SELECT identity FROM data_set) ELSE data_set END"
    f" WHERE id IN ({_FREE}"
)
_TAKE = Statement(
    f"{_TAKE_FREE.replace('$', '?')}) RETURNING id", f"{_TAKE_FREE} FOR UPDATE OF w SKIP LOCKED) RETURNING id"
)
_END = statement("DELETE FROM deliverers WHERE owner = $1")

_HEALTH_COLUMNS = ("failures", "failing_since_ms", "paused_until_ms")
_OWNED = statement(
    f"SELECT id, revision, account_id, url, types, secrets, {select(BOOKMARK)}, {select(_HEALTH_COLUMNS)}"
    f" FROM webhooks w WHERE w.owner = $1 AND {_IN_USE} ORDER BY id"
)
# The next repetitions of each webhook: one that fails may have any number, and all are read at each claim.
_REPETITION = select([f"r.{column}" for column in REPETITION])
_LAST_READ = f"ORDER BY at_ms LIMIT 1 OFFSET {REPETITIONS_READ - 1}"
NEXT_REPETITIONS = Statement(
    f"SELECT w.id, {_REPETITION} FROM webhooks w CROSS JOIN webhook_repetitions r WHERE w.owner = ?1"
    " AND r.webhook_id = w.id AND r.at_ms <= coalesce((SELECT at_ms FROM webhook_repetitions l"
    f" WHERE l.webhook_id = w.id {_LAST_READ}), {INT64_MAX})",
    f"SELECT w.id, {_REPETITION} FROM webhooks w CROSS JOIN LATERAL (SELECT * FROM webhook_repetitions l"
    f" WHERE l.webhook_id = w.id ORDER BY at_ms LIMIT {REPETITIONS_READ}) AS r WHERE w.owner = $1",
)
# A bookmark of the data before a restore is none in what was restored.
_IS_SAME_DATA = "$3 = (SELECT identity FROM data_set)"
_SET_BOOKMARK = "data_set = $3, after_transaction = $4, after_id = $5"
_ADVANCE = f"UPDATE webhooks SET {_SET_BOOKMARK} WHERE owner = $2 AND {_IS_SAME_DATA} AND id IN (SELECT value"
_ADVANCE_ALL = Statement(
    f"{_ADVANCE.replace('$', '?')} FROM json_each(?1))",
    f"{_ADVANCE}::bigint FROM json_array_elements_text($1::text::json))",
)
_RESUME = statement(f"UPDATE webhooks SET {_SET_BOOKMARK} WHERE id = $1 AND owner = $2 AND revision = $6")
_SETTLE = statement(
    f"UPDATE webhooks SET {_SET_BOOKMARK}, failures = $6, failing_since_ms = $7, paused_until_ms = $8"
    f" WHERE id = $1 AND owner = $2 AND revision = $9 AND ({_IS_SAME_DATA}"
    " OR (data_set, after_transaction, after_id) = ($3, $4, $5)) RETURNING id"
)
# None where one was asked for since.
_SCHEDULE = statement(
    f"INSERT INTO webhook_repetitions (webhook_id, {select(REPETITION)}) VALUES ($1, $2, $3, $4, $5)"
    " ON CONFLICT (webhook_id, data_set, entry_id) DO NOTHING"
)
_FORGET = statement(
    "DELETE FROM webhook_repetitions WHERE webhook_id = $1 AND data_set = $2 AND entry_id = $3 AND at_ms = $4"
)
_NUMBERS = ("at_ms", "duration_ms", "status", "next_at_ms")
_NOTE = Statement(
    f"INSERT INTO webhook_tries (webhook_id, {select(ATTEMPT)})"
    f" SELECT ?1, {select([f'value ->> {i}' for i in range(len(ATTEMPT))])}"
    " FROM json_each(?2) ORDER BY key",
    f"INSERT INTO webhook_tries (webhook_id, {select(ATTEMPT)}) SELECT $1, "
    + select([f"(v ->> {i}){'::bigint' if name in _NUMBERS else ''}" for i, name in enumerate(ATTEMPT)])
    + " FROM json_array_elements($2::text::json) WITH ORDINALITY AS e (v, n) ORDER BY n",
)
PRUNE = statement(
    "DELETE FROM webhook_tries WHERE webhook_id = $1 AND fault IS NULL AND id <="
    " (SELECT id FROM webhook_tries WHERE webhook_id = $1 AND fault IS NULL"
    f" ORDER BY id DESC LIMIT 1 OFFSET {SUCCESSES_KEPT})"
)
# The newest restore of data that had the entry $1.
_RESTORED = "FROM journal WHERE subject = 'store' AND subject_id = 0 AND action = 'restored' AND id > $1"
_LAST_RESTORE = Statement(
    f"SELECT 0, id {_RESTORED.replace('$', '?')} ORDER BY id DESC LIMIT 1",
    f"SELECT CASE WHEN id <= {BASE} THEN '0' ELSE transaction::text END, id {_RESTORED}"
    " ORDER BY id DESC LIMIT 1",
)

_STATES = statement(
    "SELECT count(*) FILTER (WHERE disabled IS NULL AND failing_since_ms IS NULL),"
    " count(*) FILTER (WHERE disabled IS NULL AND failing_since_ms IS NOT NULL),"
    " count(*) FILTER (WHERE disabled IS NOT NULL) FROM webhooks"
    f" WHERE {IS_THERE}"
)
# The first bookmark of those that do not fail. One of other data has got nothing of these.
# The identity by itself: PostgreSQL thinks that a table without statistics has 510 rows.
_BOOKMARK_OF_THESE = "CASE WHEN w.data_set = (SELECT identity FROM data_set) THEN w.{} ELSE 0 END"
FURTHEST_BEHIND = statement(
    f"SELECT {select([_BOOKMARK_OF_THESE.format(column) for column in BOOKMARK[1:]])} FROM webhooks w"
    f" WHERE {_IN_USE} AND w.failing_since_ms IS NULL ORDER BY 1, 2 LIMIT 1"
)
_FIRST_AFTER = Statement(
    "SELECT at_ms FROM journal WHERE id > ?2 ORDER BY id LIMIT 1", f"SELECT at_ms {ADDED} {IN_ORDER} LIMIT 1"
)


class Owned(msgspec.Struct, frozen=True):
    """The webhooks that a deliverer has, and what it is to send again, by their ids: of each the next
    REPETITIONS_READ."""

    webhooks: list[OwnedWebhook]
    repetitions: list[tuple[int, Repetition]]


class Deliverers(Repository):
    """The deliverers of a store. All go by the time of the one database; `owner` names one of them."""

    @read
    def is_needed(self) -> Script[bool]:
        """Whether there is a webhook that gets anything."""
        return bool((yield ANY, ()))

    async def claim(self, owner: str, idle: Sequence[int], *, is_alone: bool) -> int | None:
        """Renew the lease, and have a fair share of the webhooks: give some of the `idle` ones back, or take
        free ones. `is_alone`: no other process delivers, whatever the store says.

        How many it has that get something; None where some were given back or taken.
        """
        await self._renew(owner, is_alone=is_alone)
        ((deliverers, webhooks, own),) = await self._database.read(rows_of(_COUNT, owner))
        share = -(-webhooks // max(deliverers, 1))
        given = idle[: min(max(own - share, 0), _RELEASED_AT_A_TIME)]
        if given:
            await self._give_back(owner, given)
        lacking, last_id = share - own, 0
        while lacking > 0 and (ids := await self._take(owner, min(lacking, _TAKEN_AT_A_TIME), last_id)):
            lacking, last_id = lacking - len(ids), max(ids)
        return None if given or last_id else own

    @write(NO_EFFECT)
    def _renew(self, _now_ms: int, owner: str, *, is_alone: bool) -> Script[None]:
        now_ms = self._clock.pinned_ms()
        yield _RENEW, (now_ms, owner)
        if is_alone:
            yield _END_OTHERS, (owner,)
        else:
            yield _END_DEAD, (now_ms,)

    @write(NO_EFFECT)
    def _give_back(self, _now_ms: int, owner: str, webhook_ids: Sequence[int]) -> Script[None]:
        for webhook_id in webhook_ids:
            yield _RELEASE, (webhook_id, owner)

    @write(NO_EFFECT)
    def _take(self, _now_ms: int, owner: str, limit: int, after_id: int) -> Script[list[int]]:
        """The ids of free ones that it has now, of those after an id."""
        return [webhook_id for (webhook_id,) in (yield _TAKE, (owner, limit, after_id))]

    @read
    def owned(self, owner: str) -> Script[Owned]:
        """The deliverer's webhooks that get something, by id."""
        webhooks = []
        for row in (yield _OWNED, (owner,)):
            bookmark, health = read_bookmark_row(row[6:9]), WebhookHealth(*row[9:])
            webhooks.append(OwnedWebhook(*[*row[:4], tuple(row[4].split(",")), row[5], bookmark, health]))
        repetitions = [(row[0], Repetition(*row[1:])) for row in (yield NEXT_REPETITIONS, (owner,))]
        return Owned(webhooks, repetitions)

    @write(NO_EFFECT)
    def release(self, _now_ms: int, owner: str) -> Script[None]:
        """End the lease: others may take the webhooks at once."""
        yield _END, (owner,)

    @write(NO_EFFECT)
    def settle(self, now_ms: int, owner: str, webhook: OwnedWebhook, settled: Settled) -> Script[bool]:
        """Save the outcomes of attempts. Returns False, and saves nothing, if the webhook is not the owner's,
        or was not meanwhile."""
        bookmark, health, webhook_id = bookmark_values(settled.after), astuple(settled.health), webhook.id
        if not (yield _SETTLE, (webhook_id, owner, *bookmark, *health, webhook.revision)):
            return False
        for ended in settled.ended_repetitions:  # a later one was asked for meanwhile
            yield _FORGET, (webhook_id, ended.data_set, ended.entry_id, ended.at_ms)
        for new in settled.new_repetitions:
            yield _SCHEDULE, (webhook_id, *astuple(new))
        if settled.attempts:
            noted = [astuple(each) for each in settled.attempts]
            yield _NOTE, (webhook_id, json_text(noted))
            yield PRUNE, (webhook_id,)
        if settled.disabled_reason is not None:
            yield from disable(now_ms, webhook_id, settled.disabled_reason, SERVICE)
        return True

    @write(NO_EFFECT)
    def move(self, _now_ms: int, owner: str, webhook_ids: Sequence[int], after: Bookmark) -> Script[None]:
        """Save that they got everything up to a bookmark."""
        yield _ADVANCE_ALL, (json_text(webhook_ids), owner, *bookmark_values(after))

    @write(NO_EFFECT)
    def go_on(self, now_ms: int, owner: str, webhook: OwnedWebhook, after: Bookmark) -> Script[Bookmark]:
        """Move a webhook from a bookmark that the store can't continue to the nearest one, the result."""
        bookmark = yield from nearest_bookmark(now_ms, after)
        yield _RESUME, (webhook.id, owner, *bookmark_values(bookmark), webhook.revision)
        return bookmark

    @read
    def states(self) -> Script[tuple[dict[str, int], float]]:
        """How many webhooks are healthy, failing and disabled, and how old the first change is, in seconds,
        that a healthy one has not passed: events of others count, so up to a minute is normal."""
        ((healthy, failing, disabled),) = yield _STATES, ()
        waited_ms = 0
        for transaction, entry_id in (yield FURTHEST_BEHIND, ()) if healthy else ():
            for (at_ms,) in (yield _FIRST_AFTER, (str(transaction), entry_id)):
                waited_ms = max(self._clock.now_ms() - at_ms, 0)
        return {"healthy": healthy, "failing": failing, "disabled": disabled}, waited_ms / SECOND_MS

    @read
    def event(self, webhook_id: int, repetition: Repetition) -> Script[Event | None]:
        """The event that is sent again; None when it is not kept any more."""
        webhook, _ = yield from get_webhook(webhook_id, None)
        return (yield from event_for(webhook, repetition.data_set, repetition.entry_id))


def nearest_bookmark(now_ms: int, after: Bookmark) -> Script[Bookmark]:
    """The bookmark to resume from. In the same data set it is the oldest one that is kept; after a restore,
    the restore's; in a copy, the same position, or the newest one where the copy has other positions.

    It is never after the newest one: events may still appear before it there, so no page continues it.
    """
    newest = yield from newest_bookmark(now_ms)
    if after.data_set == newest.data_set:
        ((_, transaction, gone_id),) = yield READ_GONE, ()
        return Bookmark(newest.data_set, Position(int(transaction), gone_id))
    for transaction, entry_id in (yield _LAST_RESTORE, (after.position.id,)):
        return Bookmark(newest.data_set, min(Position(int(transaction), entry_id - 1), newest.position))
    if after.position.transaction:
        return newest
    return Bookmark(newest.data_set, Position(0, after.position.id))
