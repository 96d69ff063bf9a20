"""Deliveries of webhooks, for both databases: their outcomes, and sending an event out of turn."""

from __future__ import annotations

from msgspec.structs import replace

from petstore.core.deliverers import Receiver
from petstore.core.durations import MINUTE_MS, SECOND_MS
from petstore.core.errors import Conflict, EventNotFound, RateLimited
from petstore.core.events import BY_ENTRY, SHARED, TESTED, Event, event_id_of, event_of, read_event_id
from petstore.core.webhooks import TESTS_A_MINUTE, AttemptPage, DeliveryAttempt, Webhook, entry_types_of
from petstore.transactions.accounts import get_account
from petstore.transactions.events import OWNER, newest_bookmark
from petstore.transactions.journal import first_since, record
from petstore.transactions.rows import ATTEMPT, ENTRY, read_entry, read_webhook, select
from petstore.transactions.script import (
    NO_EFFECT,
    Repository,
    Script,
    Statement,
    json_text,
    read,
    statement,
    write,
)
from petstore.transactions.webhooks import OF_ACCOUNT, get_webhook

_TESTED = (
    "SELECT count(*), min(at_ms) FROM journal WHERE subject = 'webhook' AND action = 'tested'"
    f" AND id >= $2 AND at_ms > $3 AND at_ms - {MINUTE_MS} <= $3"
)
# Tests of webhooks that were removed since count too.
_TESTS = Statement(
    f"{_TESTED.replace('$', '?')} AND after ->> 'accountId' = ?1",
    f"{_TESTED} AND (after::json ->> 'accountId')::bigint = $1",
)
_NEWEST_TEST = statement(
    "SELECT id FROM journal WHERE subject = 'webhook' AND subject_id = $1 AND action = 'tested'"
    " ORDER BY id DESC LIMIT 1"
)
_ENTRY = statement(f"SELECT {select(ENTRY)}, {OWNER} FROM journal WHERE id = $1")
_WAITING = statement("SELECT 1 FROM webhook_repetitions WHERE webhook_id = $1 LIMIT $2")
_SEND_AGAIN = statement(
    "INSERT INTO webhook_repetitions (webhook_id, data_set, entry_id, tries, at_ms)"
    " VALUES ($1, $2, $3, 0, $4) ON CONFLICT (webhook_id, data_set, entry_id)"
    " DO UPDATE SET at_ms = excluded.at_ms"
)
# The attempts of a webhook are read by their index, however rare they are.
_SELECT_ATTEMPTS = f"SELECT id, {select(ATTEMPT)} FROM webhook_tries"
ATTEMPTS = Statement(
    f"{_SELECT_ATTEMPTS} WHERE webhook_id = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3",
    f"{_SELECT_ATTEMPTS} WHERE (webhook_id, id) > ($1, 0) AND (webhook_id, id) < ($1, $2)"
    " ORDER BY webhook_id DESC, id DESC LIMIT $3",
)
# The times among these that a repetition of the webhook still waits for.
_SELECT_AHEAD = "SELECT at_ms FROM webhook_repetitions WHERE webhook_id = $1 AND at_ms IN"
AHEAD = Statement(
    f"{_SELECT_AHEAD.replace('$', '?')} (SELECT value FROM json_each(?2))",
    f"{_SELECT_AHEAD} (SELECT value::bigint FROM json_array_elements_text($2::text::json))",
)
TEST = statement(
    f"SELECT {select(ATTEMPT)} FROM webhook_tries WHERE type = 'webhook.test' AND event_id = $2"
    " AND +webhook_id = $1 ORDER BY id LIMIT 1"
)

# Events that wait to be sent again: more are not asked for.
REPETITIONS_MAX = 1_000


class Deliveries(Repository):
    """The deliveries of a store's webhooks. Methods raise WebhookNotFound, with an `account_id` also for a
    webhook of another account. `actor` is for the journal.
    """

    @write(NO_EFFECT)
    def test(self, now_ms: int, webhook_id: int, actor: str, account_id: int) -> Script[str]:
        """Queue an event for this webhook alone; its id.

        Raises Conflict for a disabled one, and RateLimited for too many tests of an account.
        """
        identity = (yield from newest_bookmark(now_ms)).data_set
        yield from get_account(account_id)  # locked: two at once are counted one by one
        webhook, _ = yield from get_webhook(webhook_id, account_id)
        _check_enabled(webhook)
        since_ms = now_ms - MINUTE_MS
        first_id = yield from first_since(since_ms)
        ((tests, first_ms),) = yield _TESTS, (webhook.account_id, first_id, since_ms)
        if tests >= TESTS_A_MINUTE:
            seconds = -(-(first_ms + MINUTE_MS - now_ms) // SECOND_MS)
            raise RateLimited(
                f"An account may test webhooks {TESTS_A_MINUTE} times a minute; try again in {seconds} s.",
                retry_after_seconds=seconds,
            )
        tested = {"accountId": webhook.account_id, "url": webhook.url}
        yield from record(now_ms, actor, "webhook", webhook_id, "tested", None, tested)
        ((entry_id,),) = yield _NEWEST_TEST, (webhook_id,)
        yield _SEND_AGAIN, (webhook_id, identity, entry_id, now_ms)
        return event_id_of(identity, entry_id)

    @write(NO_EFFECT)
    def redeliver(
        self, now_ms: int, webhook_id: int, event_id: str, actor: str, account_id: int | None = None
    ) -> Script[None]:
        """Queue an event that the account sees once more.

        Raises EventNotFound, and Conflict for a disabled webhook and for too many that wait.
        """
        identity = (yield from newest_bookmark(now_ms)).data_set
        webhook, _ = yield from get_webhook(webhook_id, account_id)
        _check_enabled(webhook)
        named = read_event_id(event_id)
        if named is None:
            raise EventNotFound(event_id)
        data_set, entry_id = named
        if identity != data_set or (yield from event_for(webhook, data_set, entry_id)) is None:
            raise EventNotFound(event_id)
        if len((yield _WAITING, (webhook_id, REPETITIONS_MAX))) >= REPETITIONS_MAX:
            raise Conflict(
                f"{REPETITIONS_MAX:,} events wait to be sent again to webhook {webhook_id}. Try again later,"
                " or move its bookmark by `after`."
            )
        yield _SEND_AGAIN, (webhook_id, data_set, entry_id, now_ms)
        yield from record(now_ms, actor, "webhook", webhook_id, "redelivered", None, {"eventId": event_id})

    @read
    def attempts(
        self, webhook_id: int, limit: int, before_id: int, account_id: int | None = None
    ) -> Script[AttemptPage]:
        """At most `limit` attempts, newest first, of those before `before_id`. While the webhook is disabled
        no repetition has a time: it waits until the webhook is enabled."""
        webhook, _ = yield from get_webhook(webhook_id, account_id)
        rows = yield ATTEMPTS, (webhook_id, before_id, limit + 1)
        attempts = [DeliveryAttempt(*row[1:]) for row in rows[:limit]]
        if webhook.disabled is not None:
            times = [each.next_at_ms for each in attempts if each.next_at_ms is not None]
            held = {at_ms for (at_ms,) in (yield AHEAD, (webhook_id, json_text(times)))}
            # Times to come go too, which belong to no repetition any more: it was asked for sooner.
            held.update(at_ms for at_ms in times if at_ms > self._clock.now_ms())
            attempts = [
                replace(each, next_at_ms=None) if each.next_at_ms in held else each for each in attempts
            ]
        return AttemptPage(attempts, rows[limit - 1][0] if len(rows) > limit else None)

    @read
    def receivers(self, account_id: int, kind: str) -> Script[list[Receiver]]:
        """The account's webhooks that get events of entries of this type, by id."""
        rows = yield OF_ACCOUNT, (account_id,)
        found = [(read_webhook(row[:-1]), row[-1]) for row in rows]
        return [
            Receiver(webhook.id, webhook.url, secrets)
            for webhook, secrets in found
            if webhook.disabled is None and kind in entry_types_of(webhook.types)
        ]

    @read
    def first_attempt(self, webhook_id: int, event_id: str) -> Script[DeliveryAttempt | None]:
        """The outcome of a test; None before there is an attempt."""
        rows = yield TEST, (webhook_id, event_id)
        return DeliveryAttempt(*rows[0]) if rows else None


def event_for(webhook: Webhook, data_set: str, entry_id: int) -> Script[Event | None]:
    """An event, if the account sees it, and if it is not a test of another webhook."""
    for *row, owner in (yield _ENTRY, (entry_id,)):
        entry = read_entry(row)
        is_seen = entry.subject in SHARED or owner == webhook.account_id
        is_foreign_test = entry.type == TESTED and entry.subject_id != webhook.id
        if entry.type in BY_ENTRY and is_seen and not is_foreign_test:
            return event_of(data_set, entry)
    return None


def _check_enabled(webhook: Webhook) -> None:
    if webhook.disabled is not None:
        raise Conflict(f"Webhook {webhook.id} is disabled: enable it first.")
