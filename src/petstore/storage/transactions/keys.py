"""Keys. A key's text never reaches the tables, only its digest."""

from __future__ import annotations

from petstore.core.clock import Clock
from petstore.core.errors import KeyNotFound
from petstore.core.keys import (
    Access,
    ApiKey,
    IssuedKey,
    check_label,
    digest,
    display,
    mint,
    rotated_until,
)
from petstore.storage.rows import SELECT_CALLER, SELECT_KEY, read_key
from petstore.storage.transactions.accounts import find_account
from petstore.storage.transactions.script import KEYRING, REVOCATION, Database, Script, statement

_KEY_BY_ID = statement(f"{SELECT_KEY} WHERE k.id = $1", lock=" FOR UPDATE OF k")
_KEY_BY_DIGEST = statement(f"{SELECT_KEY} WHERE k.digest = $1")
_KEYS_OF_ACCOUNT = statement(f"{SELECT_KEY} WHERE k.account_id = $1 ORDER BY k.id")
_ADD_KEY = statement(
    "INSERT INTO api_keys (account_id, digest, label, display, created_at_ms, expires_at_ms, access)"
    " VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id"
)
CALLER = statement(f"{SELECT_CALLER} WHERE k.digest = $1")
_SET_EXPIRY = statement("UPDATE api_keys SET expires_at_ms = $2 WHERE id = $1")
_REVOKE = statement("UPDATE api_keys SET revoked_at_ms = coalesce(revoked_at_ms, $2) WHERE id = $1")
# Later than the pardon before, also after the clock was set back: limiters compare the times.
_PARDON = statement(
    "UPDATE api_keys SET pardoned_at_ms = CASE WHEN $2 > pardoned_at_ms THEN $2 ELSE pardoned_at_ms + 1 END"
    " WHERE id = $1"
)
_CLEAR_BANS = statement("DELETE FROM key_standings WHERE key_id = $1")


def find_key(key_id: int) -> Script[ApiKey]:
    """A key, whose row a transaction locks until its end. Raises KeyNotFound."""
    rows = yield _KEY_BY_ID, (key_id,)
    if not rows:
        raise KeyNotFound(key_id)
    return read_key(rows[0])


def find_key_by_digest(key_digest: bytes) -> Script[ApiKey | None]:
    """A key, or None."""
    rows = yield _KEY_BY_DIGEST, (key_digest,)
    return read_key(rows[0]) if rows else None


def keys_of(reference: str) -> Script[list[ApiKey]]:
    """An account's keys, by id. Raises AccountNotFound."""
    account = yield from find_account(reference)
    return [read_key(row) for row in (yield _KEYS_OF_ACCOUNT, (account.id,))]


def issue(
    reference: str,
    environment: str,
    label: str,
    actor: str,
    now_ms: int,
    expires_at_ms: int | None,
    access: Access,
) -> Script[IssuedKey]:
    """Raises AccountNotFound."""
    account = yield from find_account(reference)
    return (yield from _add_key(account.id, environment, label, now_ms, expires_at_ms, access))


def rotate(key_id: int, environment: str, overlap_ms: int, actor: str, now_ms: int) -> Script[IssuedKey]:
    """Raises KeyNotFound, and Conflict unless the key is active."""
    old = yield from find_key(key_id)
    yield _SET_EXPIRY, (key_id, rotated_until(old, now_ms, overlap_ms))
    return (
        yield from _add_key(old.account_id, environment, old.label, now_ms, old.expires_at_ms, old.access)
    )


def revoke(key_id: int, actor: str, now_ms: int) -> Script[ApiKey]:
    """Raises KeyNotFound. The first revocation's time stays."""
    yield _REVOKE, (key_id, now_ms)
    return (yield from find_key(key_id))


def pardon(key_id: int, actor: str, now_ms: int) -> Script[ApiKey]:
    """Raises KeyNotFound."""
    yield _PARDON, (key_id, now_ms)
    yield _CLEAR_BANS, (key_id,)
    return (yield from find_key(key_id))


def _add_key(
    account_id: int, environment: str, label: str, now_ms: int, expires_at_ms: int | None, access: Access
) -> Script[IssuedKey]:
    secret = mint(environment)
    shown = display(secret)
    added = account_id, digest(secret.encode("ascii")), label, shown, now_ms, expires_at_ms, access.value
    ((key_id,),) = yield _ADD_KEY, added
    return IssuedKey(ApiKey(key_id, account_id, label, shown, now_ms, expires_at_ms, access=access), secret)


class Keys:
    """A KeyRepository but for `find_caller`, which is each database's own."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def issue(
        self,
        reference: str,
        environment: str,
        actor: str,
        *,
        label: str = "",
        expires_at_ms: int | None = None,
        access: Access = Access.WRITE,
    ) -> IssuedKey:
        check_label(label)
        now_ms = self._clock.now_ms()
        return await self._database.write(
            lambda: issue(reference, environment, label, actor, now_ms, expires_at_ms, access), KEYRING
        )

    async def keys(self, reference: str) -> list[ApiKey]:
        return await self._database.read(keys_of(reference))

    async def key(self, key_id: int) -> ApiKey:
        return await self._database.read(find_key(key_id))

    async def find_key(self, key_digest: bytes) -> ApiKey | None:
        return await self._database.read(find_key_by_digest(key_digest))

    async def rotate(self, key_id: int, environment: str, overlap_ms: int, actor: str) -> IssuedKey:
        now_ms = self._clock.now_ms()
        return await self._database.write(
            lambda: rotate(key_id, environment, overlap_ms, actor, now_ms), KEYRING
        )

    async def revoke(self, key_id: int, actor: str) -> ApiKey:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: revoke(key_id, actor, now_ms), REVOCATION)

    async def pardon(self, key_id: int, actor: str) -> ApiKey:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: pardon(key_id, actor, now_ms), KEYRING)
