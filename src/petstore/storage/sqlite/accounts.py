"""Accounts and their keys in SQLite. A key's text never reaches this file's tables, only its digest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

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
from petstore.storage.sqlite.connection import translated
from petstore.storage.sqlite.writer import Writer

_CALLER = (
    "SELECT k.id, k.account_id, a.per_minute, a.per_day, k.expires_at_ms, k.revoked_at_ms, k.pardoned_at_ms"
    " FROM api_keys k JOIN accounts a ON a.id = k.account_id WHERE k.digest = ?"
)
_ACCOUNT = "SELECT id, name, plan, per_minute, per_day, created_at_ms FROM accounts"
_KEY = (
    "SELECT k.id, k.account_id, k.label, k.display, k.created_at_ms, k.expires_at_ms, k.revoked_at_ms,"
    " u.last_used_at_ms FROM api_keys k LEFT JOIN key_activity u ON u.key_id = k.id"
)


def _account(row: tuple[Any, ...]) -> Account:
    return Account(row[0], row[1], Plan(row[2], row[3], row[4]), row[5])


def _find_account(connection: apsw.Connection, reference: str) -> Account:
    """By name, or by id in digits (no name is digits alone)."""
    number = read_account_id(reference)
    column, value = ("name", reference) if number is None else ("id", number)
    row = connection.execute(f"{_ACCOUNT} WHERE {column} = ?", (value,)).fetchone()
    if row is None:
        raise AccountNotFound(reference)
    return _account(row)


def _find_key(connection: apsw.Connection, key_id: int) -> ApiKey:
    row = connection.execute(f"{_KEY} WHERE k.id = ?", (key_id,)).fetchone()
    if row is None:
        raise KeyNotFound(key_id)
    return ApiKey(*row)


class SqliteKeys:
    """Implements keys.KeyRepository."""

    def __init__(self, reader: apsw.Connection, writer: Writer, clock: Clock) -> None:
        self._reader = reader
        self._writer = writer
        self._clock = clock

    async def find_caller(self, key_digest: bytes) -> Caller | None:
        with translated():
            row = self._reader.execute(_CALLER, (key_digest,)).fetchone()
        return Caller(*row) if row else None

    async def add_account(self, name: str, plan: Plan) -> Account:
        check_account_name(name)
        now_ms = self._clock.now_ms()

        def add(connection: apsw.Connection) -> Account:
            try:
                connection.execute(
                    "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (name, plan.name, plan.per_minute, plan.per_day, now_ms),
                )
            except apsw.ConstraintError as error:
                raise AccountExists(name) from error
            return Account(connection.last_insert_rowid(), name, plan, now_ms)

        return await self._writer.submit(add)

    async def account(self, reference: str) -> Account:
        with translated():
            return _find_account(self._reader, reference)

    async def accounts(self) -> list[Account]:
        with translated():
            return [_account(row) for row in self._reader.execute(f"{_ACCOUNT} ORDER BY id")]

    async def set_plan(self, reference: str, plan: Plan) -> Account:
        def change(connection: apsw.Connection) -> Account:
            found = _find_account(connection, reference)
            connection.execute(
                "UPDATE accounts SET plan = ?, per_minute = ?, per_day = ? WHERE id = ?",
                (plan.name, plan.per_minute, plan.per_day, found.id),
            )
            return Account(found.id, found.name, plan, found.created_at_ms)

        return await self._writer.submit(change)

    async def issue(
        self, reference: str, environment: str, *, label: str = "", expires_at_ms: int | None = None
    ) -> IssuedKey:
        check_label(label)
        now_ms = self._clock.now_ms()

        def add(connection: apsw.Connection) -> IssuedKey:
            account = _find_account(connection, reference)
            return _insert_key(connection, account.id, environment, label, now_ms, expires_at_ms)

        return await self._writer.submit(add)

    async def keys(self, reference: str) -> list[ApiKey]:
        with translated():
            account = _find_account(self._reader, reference)
            rows = self._reader.execute(f"{_KEY} WHERE k.account_id = ? ORDER BY k.id", (account.id,))
            return [ApiKey(*row) for row in rows]

    async def key(self, key_id: int) -> ApiKey:
        with translated():
            return _find_key(self._reader, key_id)

    async def find_key(self, key_digest: bytes) -> ApiKey | None:
        with translated():
            row = self._reader.execute(f"{_KEY} WHERE k.digest = ?", (key_digest,)).fetchone()
        return ApiKey(*row) if row else None

    async def rotate(self, key_id: int, environment: str, overlap_ms: int) -> IssuedKey:
        now_ms = self._clock.now_ms()

        def swap(connection: apsw.Connection) -> IssuedKey:
            old = _find_key(connection, key_id)
            until_ms = rotated_until(old, now_ms, overlap_ms)
            connection.execute("UPDATE api_keys SET expires_at_ms = ? WHERE id = ?", (until_ms, key_id))
            return _insert_key(connection, old.account_id, environment, old.label, now_ms, old.expires_at_ms)

        return await self._writer.submit(swap)

    async def revoke(self, key_id: int) -> ApiKey:
        sql = "UPDATE api_keys SET revoked_at_ms = coalesce(revoked_at_ms, ?) WHERE id = ?"
        return await self._mark(key_id, sql, ends_access=True)

    async def pardon(self, key_id: int) -> ApiKey:
        def forget(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM key_standings WHERE key_id = ?", (key_id,))

        # Always later than the one before, also when the clock was set back: that is how it is noticed.
        sql = "UPDATE api_keys SET pardoned_at_ms = max(?, pardoned_at_ms + 1) WHERE id = ?"
        return await self._mark(key_id, sql, forget)

    async def _mark(
        self,
        key_id: int,
        sql: str,
        also: Callable[[apsw.Connection], None] | None = None,
        *,
        ends_access: bool = False,
    ) -> ApiKey:
        """Set a time on a key's row to now."""
        now_ms = self._clock.now_ms()

        def mark(connection: apsw.Connection) -> ApiKey:
            _find_key(connection, key_id)
            connection.execute(sql, (now_ms, key_id))
            if also is not None:
                also(connection)
            return _find_key(connection, key_id)

        return await self._writer.submit(mark, ends_access=ends_access)


def _insert_key(
    connection: apsw.Connection,
    account_id: int,
    environment: str,
    label: str,
    now_ms: int,
    expires_at_ms: int | None,
) -> IssuedKey:
    secret = mint(environment)
    shown = display(secret)
    connection.execute(
        "INSERT INTO api_keys (account_id, digest, label, display, created_at_ms, expires_at_ms)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (account_id, digest(secret.encode("ascii")), label, shown, now_ms, expires_at_ms),
    )
    key_id = connection.last_insert_rowid()
    return IssuedKey(ApiKey(key_id, account_id, label, shown, now_ms, expires_at_ms), secret)
