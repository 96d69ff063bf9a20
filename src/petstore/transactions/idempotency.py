"""One creation for each Idempotency-Key, recorded in the transaction that creates."""

from __future__ import annotations

from collections.abc import Callable

from petstore.core.clock import Clock
from petstore.core.digests import digest
from petstore.core.errors import IdempotencyKeyInUse
from petstore.core.idempotency import KEPT_MS, Creation, IdempotencyKey, InFlight
from petstore.transactions.rows import CREATION, select
from petstore.transactions.script import (
    Database,
    Repository,
    Script,
    Statement,
    moment_ms,
    removal,
    sqlite_moment_ms,
    statement,
)

# The lock is tried, never waited for: another process that holds it is carrying the key out. The statements
# after it see everything that the holder before committed. SQLite has one writer.
_LOCK_KEY = Statement(
    sqlite=f"SELECT true, {sqlite_moment_ms(2)}",
    postgres=f"SELECT pg_try_advisory_xact_lock($1::bigint), {moment_ms(2)}",
)
_FIND = statement(
    "SELECT resource, fingerprint, resource_id FROM creations"
    " WHERE account_id = $1 AND key = $2 AND created_at_ms > $3"
)
# Replaces a row that is older than 24 hours. The primary key lets one creation win even without the lock.
_KEEP = statement(
    f"INSERT INTO creations ({select(CREATION)}) VALUES ($1, $2, $3, $4, $5, $6)"
    " ON CONFLICT (account_id, key) DO UPDATE SET resource = excluded.resource,"
    " fingerprint = excluded.fingerprint, resource_id = excluded.resource_id,"
    " created_at_ms = excluded.created_at_ms WHERE creations.created_at_ms <= $7 RETURNING account_id"
)
REMOVE_OLD = removal(
    "creations", "account_id, key", f"created_at_ms <= {{now}} - {KEPT_MS} ORDER BY created_at_ms"
)


class IdempotentRepository(Repository):
    """A noun whose creations may have an Idempotency-Key."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._in_flight = InFlight()


def create_once(
    creation: Creation, pinned_ms: int | None, create: Callable[[], Script[int]]
) -> Script[tuple[int, bool]]:
    """The identifier of the resource, and True if an earlier request with the key created it.

    `pinned_ms` is None where the server's clock decides. Raises IdempotencyKeyInUse, IdempotencyKeyReused and
    the errors of `create`.
    """
    account_id, key = creation.idempotency_key.account_id, creation.idempotency_key.text
    ((is_free, now_ms),) = yield _LOCK_KEY, (lock_number(creation.idempotency_key), pinned_ms)
    if not is_free:
        raise IdempotencyKeyInUse
    expired_ms = now_ms - KEPT_MS
    for resource, fingerprint, resource_id in (yield _FIND, (account_id, key, expired_ms)):
        creation.check_replay(resource, fingerprint)
        return resource_id, True
    created_id = yield from create()
    kept = creation.fingerprint, created_id, now_ms, creation.resource
    if not (yield _KEEP, (account_id, key, *kept, expired_ms)):
        raise IdempotencyKeyInUse
    return created_id, False


def lock_number(idempotency_key: IdempotencyKey) -> int:
    """64 bits for PostgreSQL's lock. If two keys share them, one gets 409 and tries again."""
    text = f"{idempotency_key.account_id}:{idempotency_key.text}".encode()
    return int.from_bytes(digest(text)[:8], "big", signed=True)
