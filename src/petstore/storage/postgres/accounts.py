"""Accounts and their keys in PostgreSQL. A key's text never reaches this file's tables, only its digest."""

from __future__ import annotations

from typing import Any

from petstore.core.clock import Clock
from petstore.core.errors import AccountExists, AccountNotFound, KeyNotFound
from petstore.core.keys import (
    Account,
    ApiKey,
    Caller,
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
from petstore.storage.postgres.database import Database
from petstore.storage.postgres.pool import Connection
from petstore.storage.postgres.sharing import Shared

_CALLERS = (
    "SELECT k.digest, k.id, k.account_id, a.per_minute, a.per_day, k.expires_at_ms, k.revoked_at_ms,"
    " k.pardoned_at_ms FROM api_keys k JOIN accounts a ON a.id = k.account_id"
)
# PostgreSQL plans a query with an array anew each time, which takes longer than a look-up.
_CALLER_OF_ONE = f"{_CALLERS} WHERE k.digest = $1"
_CALLERS_OF_MANY = f"{_CALLERS} WHERE k.digest = ANY($1::bytea[])"
_ACCOUNT_COLUMNS = "id, name, plan, per_minute, per_day, created_at_ms"
_ACCOUNT = f"SELECT {_ACCOUNT_COLUMNS} FROM accounts"
_KEY = (
    "SELECT k.id, k.account_id, k.label, k.display, k.created_at_ms, k.expires_at_ms, k.revoked_at_ms,"
    " u.last_used_at_ms FROM api_keys k LEFT JOIN key_activity u ON u.key_id = k.id"
)
_ADD_KEY = (
    "INSERT INTO api_keys (account_id, digest, label, display, created_at_ms, expires_at_ms)"
    " VALUES ($1, $2, $3, $4, $5, $6) RETURNING id"
)


def _account(row: Any) -> Account:
    return Account(row[0], row[1], Plan(row[2], row[3], row[4]), row[5])


def _which(reference: str) -> tuple[str, int | str]:
    """A condition and its value: by name, or by id in digits (no name is digits alone)."""
    number = read_account_id(reference)
    if number is not None:
        return "id = $1", number
    # What can't be a name is not asked for: the server refuses some of it, as U+0000.
    return "name = $1", reference if reference.isascii() and reference.isprintable() else ""


class PostgresKeys:
    """Implements keys.KeyRepository."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        # Anybody can send keys that nobody was given: they take one connection, however many they are.
        self._finding: Shared[bytes, dict[bytes, Caller]] = Shared(self._find_callers)

    async def find_caller(self, key_digest: bytes) -> Caller | None:
        return (await self._finding.answer(key_digest)).get(key_digest)

    async def _find_callers(self, digests: set[bytes]) -> dict[bytes, Caller]:
        if len(digests) == 1:
            rows = await self._database.fetch(_CALLER_OF_ONE, *digests)
        else:
            rows = await self._database.fetch(_CALLERS_OF_MANY, list(digests))
        return {row[0]: Caller(*row[1:]) for row in rows}

    async def add_account(self, name: str, plan: Plan) -> Account:
        check_account_name(name)
        now_ms = self._clock.now_ms()
        row = await self._database.write_row(
            "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms)"
            " VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) DO NOTHING RETURNING id",
            name,
            plan.name,
            plan.per_minute,
            plan.per_day,
            now_ms,
            keyring=True,
        )
        if row is None:
            raise AccountExists(name)
        return Account(row[0], name, plan, now_ms)

    async def account(self, reference: str) -> Account:
        condition, value = _which(reference)
        row = await self._database.fetch_row(f"{_ACCOUNT} WHERE {condition}", value)
        if row is None:
            raise AccountNotFound(reference)
        return _account(row)

    async def accounts(self) -> list[Account]:
        return [_account(row) for row in await self._database.fetch(f"{_ACCOUNT} ORDER BY id")]

    async def set_plan(self, reference: str, plan: Plan) -> Account:
        condition, value = _which(reference)
        row = await self._database.write_row(
            f"UPDATE accounts SET plan = $2, per_minute = $3, per_day = $4 WHERE {condition}"
            f" RETURNING {_ACCOUNT_COLUMNS}",
            value,
            plan.name,
            plan.per_minute,
            plan.per_day,
            keyring=True,
        )
        if row is None:
            raise AccountNotFound(reference)
        return _account(row)

    async def issue(
        self, reference: str, environment: str, *, label: str = "", expires_at_ms: int | None = None
    ) -> IssuedKey:
        check_label(label)
        now_ms = self._clock.now_ms()
        account = await self.account(reference)  # an account is never removed, and its id never changes

        async def add(connection: Connection) -> IssuedKey:
            return await _insert_key(connection, account.id, environment, label, now_ms, expires_at_ms)

        return await self._database.write(add, keyring=True)

    async def keys(self, reference: str) -> list[ApiKey]:
        account = await self.account(reference)
        rows = await self._database.fetch(f"{_KEY} WHERE k.account_id = $1 ORDER BY k.id", account.id)
        return [ApiKey(*row) for row in rows]

    async def key(self, key_id: int) -> ApiKey:
        row = await self._database.fetch_row(f"{_KEY} WHERE k.id = $1", key_id)
        if row is None:
            raise KeyNotFound(key_id)
        return ApiKey(*row)

    async def find_key(self, key_digest: bytes) -> ApiKey | None:
        row = await self._database.fetch_row(f"{_KEY} WHERE k.digest = $1", key_digest)
        return ApiKey(*row) if row else None

    async def rotate(self, key_id: int, environment: str, overlap_ms: int) -> IssuedKey:
        now_ms = self._clock.now_ms()

        async def swap(connection: Connection) -> IssuedKey:
            old = await _lock_key(connection, key_id)
            until_ms = rotated_until(old, now_ms, overlap_ms)
            await connection.execute("UPDATE api_keys SET expires_at_ms = $1 WHERE id = $2", until_ms, key_id)
            return await _insert_key(
                connection, old.account_id, environment, old.label, now_ms, old.expires_at_ms
            )

        return await self._database.write(swap, keyring=True)

    async def revoke(self, key_id: int) -> ApiKey:
        now_ms = self._clock.now_ms()

        async def mark(connection: Connection) -> ApiKey:
            await connection.execute(
                "UPDATE api_keys SET revoked_at_ms = coalesce(revoked_at_ms, $1) WHERE id = $2",
                now_ms,
                key_id,
            )
            return await _lock_key(connection, key_id)

        return await self._database.write(mark, keyring=True)

    async def pardon(self, key_id: int) -> ApiKey:
        now_ms = self._clock.now_ms()

        async def mark(connection: Connection) -> ApiKey:
            # Always later than the one before, also when the clock was set back: that is how it is noticed.
            await connection.execute(
                "UPDATE api_keys SET pardoned_at_ms = greatest($1, pardoned_at_ms + 1) WHERE id = $2",
                now_ms,
                key_id,
            )
            await connection.execute("DELETE FROM key_standings WHERE key_id = $1", key_id)
            return await _lock_key(connection, key_id)

        return await self._database.write(mark, keyring=True)


async def _lock_key(connection: Connection, key_id: int) -> ApiKey:
    """A key as it is until the transaction's end."""
    row = await connection.fetchrow(f"{_KEY} WHERE k.id = $1 FOR UPDATE OF k", key_id)
    if row is None:
        raise KeyNotFound(key_id)
    return ApiKey(*row)


async def _insert_key(
    connection: Connection,
    account_id: int,
    environment: str,
    label: str,
    now_ms: int,
    expires_at_ms: int | None,
) -> IssuedKey:
    secret = mint(environment)
    shown = display(secret)
    key_id = await connection.fetchval(
        _ADD_KEY, account_id, digest(secret.encode("ascii")), label, shown, now_ms, expires_at_ms
    )
    return IssuedKey(ApiKey(key_id, account_id, label, shown, now_ms, expires_at_ms), secret)
