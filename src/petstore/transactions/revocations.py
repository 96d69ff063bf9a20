"""The end of keys, for both databases: of one, or of all keys of an account that closes."""

from __future__ import annotations

from petstore.core.moments import iso_moment
from petstore.transactions.journal import record
from petstore.transactions.script import Script, statement

_REVOKE = statement("UPDATE api_keys SET revoked_at_ms = $2 WHERE id = $1")
_NOT_REVOKED = statement(
    "SELECT id FROM api_keys WHERE account_id = $1 AND revoked_at_ms IS NULL ORDER BY id", lock=" FOR UPDATE"
)


def end_key(key_id: int, actor: str, now_ms: int) -> Script[None]:
    """Revoke a key that is not revoked, whose row the transaction has locked."""
    yield _REVOKE, (key_id, now_ms)
    before, after = {"revokedAt": None}, {"revokedAt": iso_moment(now_ms)}
    yield from record(now_ms, actor, "key", key_id, "revoked", before, after)


def end_keys_of(account_id: int, actor: str, now_ms: int) -> Script[None]:
    """Revoke every key of an account, whose row the transaction has locked: so no key is added meanwhile."""
    for (key_id,) in (yield _NOT_REVOKED, (account_id,)):
        yield from end_key(key_id, actor, now_ms)
