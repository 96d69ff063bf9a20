"""Accounts and their keys. A key's text never reaches the tables, only its digest."""

from __future__ import annotations

from msgspec.structs import replace

from petstore.core.clock import Clock
from petstore.core.errors import AccountExists, AccountNotFound, KeyNotFound
from petstore.core.keys import (
    Account,
    ApiKey,
    IssuedKey,
    check_account_name,
    check_label,
    digest,
    display,
    mint,
    read_account_id,
    rotated_until,
)
from petstore.core.limits.plans import Plan
from petstore.storage import rows as columns
from petstore.storage.rows import SELECT_CALLER, SELECT_KEY, read_account
from petstore.storage.transactions.script import Database, Script, statement

_ACCOUNTS = f"SELECT {columns.select(columns.ACCOUNT)} FROM accounts"
_ALL_ACCOUNTS = statement(f"{_ACCOUNTS} ORDER BY id")
_ANY_ACCOUNT = statement("SELECT 1 FROM accounts LIMIT 1")
_ACCOUNT_BY_ID = statement(f"{_ACCOUNTS} WHERE id = $1")
_ACCOUNT_BY_NAME = statement(f"{_ACCOUNTS} WHERE name = $1")
_ADD_ACCOUNT = statement(
    "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms) VALUES ($1, $2, $3, $4, $5)"
    " ON CONFLICT (name) DO NOTHING RETURNING id"
)
_SET_PLAN = statement("UPDATE accounts SET plan = $2, per_minute = $3, per_day = $4 WHERE id = $1")
_KEY_BY_ID = statement(f"{SELECT_KEY} WHERE k.id = $1", lock=" FOR UPDATE OF k")
_KEY_BY_DIGEST = statement(f"{SELECT_KEY} WHERE k.digest = $1")
_KEYS_OF_ACCOUNT = statement(f"{SELECT_KEY} WHERE k.account_id = $1 ORDER BY k.id")
_ADD_KEY = statement(
    "INSERT INTO api_keys (account_id, digest, label, display, created_at_ms, expires_at_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6) RETURNING id"
)
CALLER = statement(f"{SELECT_CALLER} WHERE k.digest = $1")
_SET_EXPIRY = statement("UPDATE api_keys SET expires_at_ms = $2 WHERE id = $1")
_REVOKE = statement("UPDATE api_keys SET revoked_at_ms = coalesce(revoked_at_ms, $2) WHERE id = $1")
# Always later than the one before, also when the clock was set back: that is how it is noticed.
_PARDON = statement(
    "UPDATE api_keys SET pardoned_at_ms = CASE WHEN $2 > pardoned_at_ms THEN $2 ELSE pardoned_at_ms + 1 END"
    " WHERE id = $1"
)
_CLEAR_BANS = statement("DELETE FROM key_standings WHERE key_id = $1")


def find_account(reference: str) -> Script[Account]:
    """By name, or by id in digits (no name is digits alone). Raises AccountNotFound."""
    number = read_account_id(reference)
    if number is not None:
        rows = yield _ACCOUNT_BY_ID, (number,)
    elif reference.isascii() and reference.isprintable():
        rows = yield _ACCOUNT_BY_NAME, (reference,)
    else:  # no name; PostgreSQL refuses some of it, such as U+0000
        rows = []
    if not rows:
        raise AccountNotFound(reference)
    return read_account(rows[0])


def all_accounts() -> Script[list[Account]]:
    """Every account, by id."""
    return [read_account(row) for row in (yield _ALL_ACCOUNTS, ())]


def has_accounts() -> Script[bool]:
    """False only before a first start."""
    return bool((yield _ANY_ACCOUNT, ()))


def add_account(name: str, plan: Plan, now_ms: int) -> Script[Account]:
    """Raises AccountExists."""
    rows = yield _ADD_ACCOUNT, (name, plan.name, plan.per_minute, plan.per_day, now_ms)
    if not rows:
        raise AccountExists(name)
    return Account(rows[0][0], name, plan, now_ms)


def set_plan(reference: str, plan: Plan) -> Script[Account]:
    """Raises AccountNotFound."""
    account = yield from find_account(reference)
    yield _SET_PLAN, (account.id, plan.name, plan.per_minute, plan.per_day)
    return replace(account, plan=plan)


def find_key(key_id: int) -> Script[ApiKey]:
    """A key, which a transaction holds until its end. Raises KeyNotFound."""
    rows = yield _KEY_BY_ID, (key_id,)
    if not rows:
        raise KeyNotFound(key_id)
    return ApiKey(*rows[0])


def find_key_by_digest(key_digest: bytes) -> Script[ApiKey | None]:
    """A key, or None."""
    rows = yield _KEY_BY_DIGEST, (key_digest,)
    return ApiKey(*rows[0]) if rows else None


def keys_of(reference: str) -> Script[list[ApiKey]]:
    """An account's keys, by id. Raises AccountNotFound."""
    account = yield from find_account(reference)
    return [ApiKey(*row) for row in (yield _KEYS_OF_ACCOUNT, (account.id,))]


def issue(
    reference: str, environment: str, label: str, now_ms: int, expires_at_ms: int | None
) -> Script[IssuedKey]:
    """Raises AccountNotFound."""
    account = yield from find_account(reference)
    return (yield from _add_key(account.id, environment, label, now_ms, expires_at_ms))


def rotate(key_id: int, environment: str, overlap_ms: int, now_ms: int) -> Script[IssuedKey]:
    """Raises KeyNotFound, and Conflict unless the key is active."""
    old = yield from find_key(key_id)
    yield _SET_EXPIRY, (key_id, rotated_until(old, now_ms, overlap_ms))
    return (yield from _add_key(old.account_id, environment, old.label, now_ms, old.expires_at_ms))


def revoke(key_id: int, now_ms: int) -> Script[ApiKey]:
    """Raises KeyNotFound. The first revocation's time stays."""
    yield _REVOKE, (key_id, now_ms)
    return (yield from find_key(key_id))


def pardon(key_id: int, now_ms: int) -> Script[ApiKey]:
    """Raises KeyNotFound."""
    yield _PARDON, (key_id, now_ms)
    yield _CLEAR_BANS, (key_id,)
    return (yield from find_key(key_id))


def _add_key(
    account_id: int, environment: str, label: str, now_ms: int, expires_at_ms: int | None
) -> Script[IssuedKey]:
    secret = mint(environment)
    shown = display(secret)
    added = account_id, digest(secret.encode("ascii")), label, shown, now_ms, expires_at_ms
    ((key_id,),) = yield _ADD_KEY, added
    return IssuedKey(ApiKey(key_id, account_id, label, shown, now_ms, expires_at_ms), secret)


class Keys:
    """A KeyRepository but for `find_caller`, which is each database's own."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add_account(self, name: str, plan: Plan) -> Account:
        check_account_name(name)
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: add_account(name, plan, now_ms), keyring=True)

    async def account(self, reference: str) -> Account:
        return await self._database.read(find_account(reference))

    async def accounts(self) -> list[Account]:
        return await self._database.read(all_accounts())

    async def set_plan(self, reference: str, plan: Plan) -> Account:
        return await self._database.write(lambda: set_plan(reference, plan), keyring=True)

    async def issue(
        self, reference: str, environment: str, *, label: str = "", expires_at_ms: int | None = None
    ) -> IssuedKey:
        check_label(label)
        now_ms = self._clock.now_ms()
        return await self._database.write(
            lambda: issue(reference, environment, label, now_ms, expires_at_ms), keyring=True
        )

    async def keys(self, reference: str) -> list[ApiKey]:
        return await self._database.read(keys_of(reference))

    async def key(self, key_id: int) -> ApiKey:
        return await self._database.read(find_key(key_id))

    async def find_key(self, key_digest: bytes) -> ApiKey | None:
        return await self._database.read(find_key_by_digest(key_digest))

    async def rotate(self, key_id: int, environment: str, overlap_ms: int) -> IssuedKey:
        now_ms = self._clock.now_ms()
        return await self._database.write(
            lambda: rotate(key_id, environment, overlap_ms, now_ms), keyring=True
        )

    async def revoke(self, key_id: int) -> ApiKey:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: revoke(key_id, now_ms), keyring=True, ends_access=True)

    async def pardon(self, key_id: int) -> ApiKey:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: pardon(key_id, now_ms), keyring=True)
