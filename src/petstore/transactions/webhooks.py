"""Webhooks, for both databases. What they are signed with is an encrypted text here.

Who moves a webhook, changes its URL or types, or ends or begins its deliveries, takes it from its deliverer:
what that one saves afterwards of its attempts is void. It learns of every change by the journal.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import UNSET
from msgspec.structs import replace

from petstore.core.errors import Conflict, Unauthorized, WebhookNotFound
from petstore.core.events import NOW, read_bookmark
from petstore.core.idempotency import Creation, IdempotencyKey, fingerprint
from petstore.core.limits.plans import WEBHOOKS_MAX
from petstore.core.preconditions import Tags, check_match
from petstore.core.webhooks import DisabledReason, NewWebhook, Webhook, WebhookChange, members_of
from petstore.transactions.accounts import IS_IN_USE, get_account
from petstore.transactions.events import check_bookmark, newest_bookmark
from petstore.transactions.idempotency import IdempotentRepository, create_once
from petstore.transactions.journal import record, record_changes
from petstore.transactions.query import Query
from petstore.transactions.rows import (
    BOOKMARK,
    WEBHOOK,
    bookmark_values,
    placeholders,
    read_bookmark_row,
    read_webhook,
    select,
)
from petstore.transactions.script import NO_EFFECT, Script, read, statement, write

# Not removed: the rows of the others leave later, by retention.py. They are disabled too.
IS_THERE = "removed_at_ms IS NULL"
_WEBHOOKS = f"SELECT {select(WEBHOOK)}, secrets FROM webhooks WHERE {IS_THERE}"
_BY_ID = statement(f"{_WEBHOOKS} AND id = $1", lock=" FOR UPDATE")
OF_ACCOUNT = statement(f"{_WEBHOOKS} AND account_id = $1 ORDER BY id")
OF_KEY = statement(f"{_WEBHOOKS} AND key_id = $1 ORDER BY id", lock=" FOR UPDATE")
# As the index has it.
_IS_FAILING = "failing_since_ms IS NOT NULL AND disabled IS NULL"
FAILING = statement(
    f"SELECT {select([f'w.{column}' for column in WEBHOOK])}, a.name"
    f" FROM webhooks w JOIN accounts a ON a.id = w.account_id WHERE {_IS_FAILING} AND {IS_IN_USE}"
    " ORDER BY failing_since_ms DESC, w.id DESC LIMIT $1"
)
_REVOKED = statement("SELECT revoked_at_ms IS NOT NULL FROM api_keys WHERE id = $1", lock=" FOR SHARE")
_COUNT = statement(f"SELECT count(*) FROM webhooks WHERE account_id = $1 AND {IS_THERE}")
_ADDED = (*WEBHOOK[1:7], "secrets", *BOOKMARK)
_ADD = statement(f"INSERT INTO webhooks ({select(_ADDED)}) VALUES ({placeholders(len(_ADDED))}) RETURNING id")
_BOOKMARK = statement(f"SELECT {select(BOOKMARK)} FROM webhooks WHERE id = $1")
# Who asked to be left alone was the former URL.
_CHANGE = statement(
    "UPDATE webhooks SET url = $2, types = $3, description = $4,"
    " paused_until_ms = CASE WHEN url = $2 THEN paused_until_ms ELSE 0 END WHERE id = $1"
)
_TAKEN = "owner = '', revision = revision + 1"
_TAKE = statement(f"UPDATE webhooks SET {_TAKEN} WHERE id = $1")
_MOVE = statement(
    f"UPDATE webhooks SET data_set = $2, after_transaction = $3, after_id = $4, {_TAKEN} WHERE id = $1"
)
_ENABLE = statement(
    "UPDATE webhooks SET disabled = NULL, failures = 0, failing_since_ms = NULL, paused_until_ms = 0,"
    f" {_TAKEN} WHERE id = $1"
)
_DISABLE = statement(f"UPDATE webhooks SET disabled = $2, {_TAKEN} WHERE id = $1")
_REMOVE = statement(
    "UPDATE webhooks SET removed_at_ms = $2, secrets = '[]', disabled = coalesce(disabled, 'owner'),"
    f" {_TAKEN} WHERE id = $1"
)
_SET_SECRETS = statement("UPDATE webhooks SET secrets = $2 WHERE id = $1")


class Webhooks(IdempotentRepository):
    """The webhooks of a store. With an `account_id`, other accounts' are not found.

    Methods that take an id raise WebhookNotFound. `actor` is for the journal.
    """

    @read
    def of_account(self, account_id: int) -> Script[list[Webhook]]:
        """The webhooks of an account, by id."""
        return [read_webhook(row[:-1]) for row in (yield OF_ACCOUNT, (account_id,))]

    @read
    def of_key(self, key_id: int) -> Script[list[Webhook]]:
        """The webhooks that the key has made, by id."""
        return [read_webhook(row[:-1]) for row in (yield OF_KEY, (key_id,))]

    @read
    def page(
        self, limit: int, account_id: int | None = None, after_id: int = 0, *, failing: bool = False
    ) -> Script[list[Webhook]]:
        """The webhooks after `after_id`, by id, at most `limit`. `failing`: enabled ones that failed since
        their last success."""
        where = Query()
        where.add(f"{IS_THERE} AND id > {{}}", after_id)
        if account_id is not None:
            where.add("account_id = {}", account_id)
        if failing:
            where.add(_IS_FAILING)
        page = where.select(f"SELECT {select(WEBHOOK)} FROM webhooks", "ORDER BY id LIMIT {}", limit)
        return [read_webhook(row) for row in (yield page)]

    @read
    def failing(self, limit: int) -> Script[list[tuple[Webhook, str]]]:
        """The failing webhooks of active accounts, which are named, at most `limit`, the newest first."""
        return [(read_webhook(row[:-1]), row[-1]) for row in (yield FAILING, (limit,))]

    @read
    def get(self, webhook_id: int, account_id: int | None = None) -> Script[Webhook]:
        return (yield from get_webhook(webhook_id, account_id))[0]

    async def create(
        self,
        account_id: int,
        key_id: int,
        new: NewWebhook,
        secrets: str,
        actor: str,
        idempotency_key: IdempotencyKey | None = None,
    ) -> tuple[Webhook, str, bool]:
        """A webhook that gets what commits from now on, its encrypted secrets, and whether an earlier request
        with the Idempotency-Key has made it.

        Raises Conflict for one more than the plan has and for one that was removed since, Unauthorized where
        the key was revoked meanwhile, IdempotencyKeyInUse and IdempotencyKeyReused.
        """
        now_ms, pinned_ms = self._clock.now_ms(), self._clock.pinned_ms()

        def script() -> Script[int]:
            return _create(now_ms, account_id, key_id, new, secrets, actor)

        def once() -> Script[tuple[Webhook, str, bool]]:
            if idempotency_key is None:
                webhook_id, replayed = (yield from script()), False
            else:
                creation = Creation(idempotency_key, "webhook", fingerprint(new))
                webhook_id, replayed = yield from create_once(creation, pinned_ms, script)
            try:
                return (*(yield from get_webhook(webhook_id, account_id)), replayed)
            except WebhookNotFound:
                raise Conflict(
                    "The webhook that this Idempotency-Key has made was removed; use a new key to add another"
                    " one."
                ) from None

        if idempotency_key is None:
            return await self._database.write(once)
        return await self._in_flight.carry_out(idempotency_key, lambda: self._database.start(once))

    @write(NO_EFFECT)
    def change(
        self,
        now_ms: int,
        webhook_id: int,
        change: WebhookChange,
        actor: str,
        *,
        account_id: int | None = None,
        key_id: int | None = None,
        match: Tags | None = None,
        reason: DisabledReason = DisabledReason.OWNER,
    ) -> Script[Webhook]:
        """Raises PreconditionFailed, Unauthorized, and EventsGone for a bookmark that can't be continued."""
        if key_id is not None:
            yield from _check_key(key_id)
        before, _ = yield from get_webhook(webhook_id, account_id)
        check_match(match, members_of(before))
        after = replace(
            before,
            url=before.url if change.url is UNSET else change.url,
            types=before.types if change.types is UNSET else tuple(dict.fromkeys(change.types)),
            description=before.description if change.description is UNSET else change.description,
        )
        if after != before:
            yield _CHANGE, (webhook_id, after.url, ",".join(after.types), after.description)
            yield from record_changes(
                now_ms, actor, "webhook", webhook_id, "changed", _members(before), _members(after)
            )
        if (after.url, after.types) != (before.url, before.types):  # what the deliverer knows is void
            yield _TAKE, (webhook_id,)
        if change.after is not UNSET:
            yield from _go_on(now_ms, webhook_id, change.after, actor)
        if change.enabled is True and before.disabled is not None:
            yield from _enable(now_ms, before, actor)
            return replace(after, disabled=None, failing_since_ms=None)
        if change.enabled is False and before.disabled is None:
            yield from disable(now_ms, webhook_id, reason, actor)
            return replace(after, disabled=reason)
        return after

    @write(NO_EFFECT)
    def remove(
        self,
        now_ms: int,
        webhook_id: int,
        actor: str,
        account_id: int | None = None,
        match: Tags | None = None,
    ) -> Script[None]:
        """Raises PreconditionFailed."""
        before, _ = yield from get_webhook(webhook_id, account_id)
        check_match(match, members_of(before))
        yield _REMOVE, (webhook_id, now_ms)
        yield from record(now_ms, actor, "webhook", webhook_id, "removed", _members(before), None)

    @write(NO_EFFECT)
    def rotate(
        self,
        now_ms: int,
        webhook_id: int,
        actor: str,
        renew: Callable[[str, int], str],
        account_id: int | None = None,
    ) -> Script[tuple[Webhook, str]]:
        """The webhook and its new secrets: what `renew` makes of the former ones, both encrypted, and of this
        moment. Raises what it raises."""
        webhook, secrets = yield from get_webhook(webhook_id, account_id)
        renewed = renew(secrets, now_ms)
        yield _SET_SECRETS, (webhook_id, renewed)
        yield from record(now_ms, actor, "webhook", webhook_id, "rotated", {}, {})
        return webhook, renewed


def disable(now_ms: int, webhook_id: int, reason: DisabledReason, actor: str) -> Script[None]:
    """End its deliveries."""
    yield _DISABLE, (webhook_id, reason.value)
    yield from record(now_ms, actor, "webhook", webhook_id, "disabled", *_states(None, reason))


def disable_of_key(now_ms: int, key_id: int, actor: str) -> Script[None]:
    """End the deliveries of the webhooks that a key has made."""
    for webhook in [read_webhook(row[:-1]) for row in (yield OF_KEY, (key_id,))]:
        if webhook.disabled is None:
            yield from disable(now_ms, webhook.id, DisabledReason.OPERATOR, actor)


def get_webhook(webhook_id: int, account_id: int | None) -> Script[tuple[Webhook, str]]:
    """A webhook and its encrypted secrets. Raises WebhookNotFound, also for one of another account."""
    for *row, secrets in (yield _BY_ID, (webhook_id,)):
        webhook = read_webhook(row)
        if account_id in (None, webhook.account_id):
            return webhook, secrets
    raise WebhookNotFound(webhook_id)


def _create(
    now_ms: int, account_id: int, key_id: int, new: NewWebhook, secrets: str, actor: str
) -> Script[int]:
    account = yield from get_account(account_id)
    yield from _check_key(key_id)
    limit = WEBHOOKS_MAX.get(account.plan.name, WEBHOOKS_MAX["free"])
    if (yield _COUNT, (account_id,))[0][0] >= limit:
        raise Conflict(
            f"The account has {limit} webhooks, which is all that the plan {account.plan.name} has."
            " Remove one, or ask for a larger plan."
        )
    after = yield from newest_bookmark(now_ms)
    types = tuple(dict.fromkeys(new.types))
    values = (account_id, key_id, new.url, ",".join(types), new.description, now_ms, secrets)
    webhook_id = int((yield _ADD, (*values, *bookmark_values(after)))[0][0])
    webhook = Webhook(webhook_id, account_id, key_id, new.url, types, new.description, now_ms)
    added = {"accountId": account_id, "keyId": key_id, **_members(webhook)}
    yield from record(now_ms, actor, "webhook", webhook_id, "added", None, added)
    return webhook_id


def _check_key(key_id: int) -> Script[None]:
    """Raise Unauthorized for one that was revoked since the request began, or it would leave a webhook."""
    if (yield _REVOKED, (key_id,))[0][0]:
        raise Unauthorized("The API key is revoked.")


def _enable(now_ms: int, before: Webhook, actor: str) -> Script[None]:
    """Raises EventsGone where its bookmark can't be continued."""
    yield from check_bookmark(read_bookmark_row((yield _BOOKMARK, (before.id,))[0]))
    yield _ENABLE, (before.id,)
    yield from record(now_ms, actor, "webhook", before.id, "enabled", *_states(before.disabled, None))


def _go_on(now_ms: int, webhook_id: int, after: str, actor: str) -> Script[None]:
    if after == NOW:
        bookmark = yield from newest_bookmark(now_ms)
    else:
        bookmark = read_bookmark(after)
        yield from check_bookmark(bookmark)
    before = {"after": str(read_bookmark_row((yield _BOOKMARK, (webhook_id,))[0]))}
    yield _MOVE, (webhook_id, *bookmark_values(bookmark))
    yield from record(now_ms, actor, "webhook", webhook_id, "moved", before, {"after": str(bookmark)})


def _members(webhook: Webhook) -> dict[str, object]:
    return {"url": webhook.url, "types": webhook.types, "description": webhook.description}


def _states(*reasons: DisabledReason | None) -> list[dict[str, object]]:
    return [{"enabled": reason is None, "disabledReason": reason} for reason in reasons]
