"""Accounts, for both databases."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from petstore.core.accounts import (
    Account,
    AccountPage,
    AccountQuery,
    check_account_name,
    read_account_id,
)
from petstore.core.clock import Clock
from petstore.core.errors import AccountExists, AccountNotFound, Conflict
from petstore.core.limits.plans import LIMIT_COLUMNS, Plan, and_list
from petstore.transactions.account_pages import page_of_accounts
from petstore.transactions.journal import record, record_changes
from petstore.transactions.revocations import end_keys_of
from petstore.transactions.rows import ACCOUNT, read_account, select
from petstore.transactions.script import KEYRING, REVOCATION, Database, Script, names_of, statement

_ACCOUNTS = f"SELECT {select(ACCOUNT)} FROM accounts"
_ALL = statement(f"{_ACCOUNTS} ORDER BY id")
_ANY = statement("SELECT 1 FROM accounts LIMIT 1")
# References to the row need not wait for such a lock.
_BY_ID = statement(f"{_ACCOUNTS} WHERE id = $1", lock=" FOR NO KEY UPDATE")
_BY_NAME = statement(f"{_ACCOUNTS} WHERE name = $1", lock=" FOR NO KEY UPDATE")
_ADD = statement(
    f"INSERT INTO accounts (name, created_at_ms, plan, {select(LIMIT_COLUMNS)})"
    f" VALUES ($1, $2, $3, {select([f'${at}' for at, _ in enumerate(LIMIT_COLUMNS, 4)])})"
    " ON CONFLICT (name) DO NOTHING RETURNING id"
)
_SET_STATE = statement("UPDATE accounts SET suspended_at_ms = $2, closed_at_ms = $3 WHERE id = $1")
_OTHERS_NAME = statement("SELECT 1 FROM accounts WHERE name = $1 AND id <> $2")
_SET_NAME = statement("UPDATE accounts SET name = $2 WHERE id = $1")
_SET_PLAN = statement(
    "UPDATE accounts SET plan = $2,"
    f" {select([f'{column} = ${at}' for at, column in enumerate(LIMIT_COLUMNS, 3)])} WHERE id = $1"
)


def find_account(reference: str) -> Script[Account]:
    """By name, or by id in digits (no name is digits alone). Raises AccountNotFound.

    A transaction locks the account's row until its end.
    """
    number = read_account_id(reference)
    if number is not None:
        rows = yield _BY_ID, (number,)
    elif reference.isascii() and reference.isprintable():
        rows = yield _BY_NAME, (reference,)
    else:  # no name; PostgreSQL refuses some of it, such as U+0000
        rows = []
    if not rows:
        raise AccountNotFound(reference)
    return read_account(rows[0])


def all_accounts() -> Script[list[Account]]:
    """Every account, by id."""
    return [read_account(row) for row in (yield _ALL, ())]


def has_accounts() -> Script[bool]:
    """False only before a first start."""
    return bool((yield _ANY, ()))


def add_account(name: str, plan: Plan, actor: str, now_ms: int) -> Script[Account]:
    """Raises AccountExists."""
    rows = yield _ADD, (name, now_ms, plan.name, *plan.limits)
    if not rows:
        raise AccountExists(name)
    added = Account(rows[0][0], name, plan, now_ms)
    yield from record(now_ms, actor, "account", added.id, "added", None, {"name": name, **plan.members()})
    return added


def set_plan(
    reference: str, plan: Plan, actor: str, now_ms: int, expected: Plan | None = None
) -> Script[Account]:
    """Raises AccountNotFound, and Conflict for a closed account or another plan than the expected one."""
    account = yield from find_account(reference)
    account.check_open()
    present = account.plan
    if expected not in (None, present) and plan != present:
        raise Conflict(
            f"{account.name} has the plan {present.name} now: {and_list(present.phrases('requests'))}."
            " Repeat the change to replace it."
        )
    changed = replace(account, plan=plan)
    yield _SET_PLAN, (account.id, plan.name, *plan.limits)
    before, after = present.members(), plan.members()
    yield from record_changes(now_ms, actor, "account", account.id, "plan_changed", before, after)
    return changed


def suspend(reference: str, actor: str, now_ms: int) -> Script[Account]:
    """Raises AccountNotFound, and Conflict for a closed account."""
    account = yield from find_account(reference)
    account.check_open()
    if account.suspended_at_ms is not None:
        return account
    changed = replace(account, suspended_at_ms=now_ms)
    return (yield from _set_state(account, changed, "suspended", actor, now_ms))


def resume(reference: str, actor: str, now_ms: int) -> Script[Account]:
    """Raises AccountNotFound, and Conflict for a closed account."""
    account = yield from find_account(reference)
    account.check_open()
    if account.suspended_at_ms is None:
        return account
    changed = replace(account, suspended_at_ms=None)
    return (yield from _set_state(account, changed, "resumed", actor, now_ms))


def close(reference: str, actor: str, now_ms: int) -> Script[Account]:
    """Raises AccountNotFound. A closed account has no key that is not revoked."""
    account = yield from find_account(reference)
    if account.closed_at_ms is not None:
        return account
    changed = replace(account, closed_at_ms=now_ms)
    yield from _set_state(account, changed, "closed", actor, now_ms)
    yield from end_keys_of(account.id, actor, now_ms)
    return changed


def _set_state(account: Account, changed: Account, action: str, actor: str, now_ms: int) -> Script[Account]:
    yield _SET_STATE, (account.id, changed.suspended_at_ms, changed.closed_at_ms)
    before, after = {"state": account.state}, {"state": changed.state}
    yield from record(now_ms, actor, "account", account.id, action, before, after)
    return changed


def rename(
    reference: str, name: str, actor: str, now_ms: int, expected: str | None = None
) -> Script[Account]:
    """Raises AccountNotFound, AccountExists, and Conflict for another name than the expected one."""
    account = yield from find_account(reference)
    if name == account.name:
        return account
    if expected not in (None, account.name):
        raise Conflict(f"The account is called {account.name} now. Repeat the change to replace it.")
    if (yield _OTHERS_NAME, (name, account.id)):
        raise AccountExists(name)
    changed = replace(account, name=name)
    yield _SET_NAME, (account.id, name)
    before, after = {"name": account.name}, {"name": name}
    yield from record(now_ms, actor, "account", account.id, "renamed", before, after)
    return changed


class Accounts:
    """Implements accounts.AccountRepository."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, name: str, plan: Plan, actor: str) -> Account:
        check_account_name(name)
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: add_account(name, plan, actor, now_ms), KEYRING)

    async def find(self, reference: str) -> Account:
        return await self._database.read(find_account(reference))

    async def names(self, ids: Iterable[int]) -> dict[int, str]:
        return await self._database.read(names_of("accounts", tuple(ids)))

    async def all(self) -> list[Account]:
        return await self._database.read(all_accounts())

    async def page(self, query: AccountQuery, now_ms: int) -> AccountPage:
        return await self._database.read(page_of_accounts(query, now_ms))

    async def set_plan(
        self, reference: str, plan: Plan, actor: str, *, expected: Plan | None = None
    ) -> Account:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: set_plan(reference, plan, actor, now_ms, expected), KEYRING)

    async def suspend(self, reference: str, actor: str) -> Account:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: suspend(reference, actor, now_ms), REVOCATION)

    async def resume(self, reference: str, actor: str) -> Account:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: resume(reference, actor, now_ms), KEYRING)

    async def rename(self, reference: str, name: str, actor: str, *, expected: str | None = None) -> Account:
        check_account_name(name)
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: rename(reference, name, actor, now_ms, expected), KEYRING)

    async def close(self, reference: str, actor: str) -> Account:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: close(reference, actor, now_ms), REVOCATION)
