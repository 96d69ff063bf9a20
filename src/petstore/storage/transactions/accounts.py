"""Accounts, for both databases."""

from __future__ import annotations

from msgspec.structs import replace

from petstore.core.accounts import Account, check_account_name, read_account_id
from petstore.core.clock import Clock
from petstore.core.errors import AccountExists, AccountNotFound
from petstore.core.limits.plans import Plan
from petstore.storage.rows import ACCOUNT, read_account, select
from petstore.storage.transactions.journal import record, record_changes
from petstore.storage.transactions.script import KEYRING, Database, Script, statement

_ACCOUNTS = f"SELECT {select(ACCOUNT)} FROM accounts"
_ALL = statement(f"{_ACCOUNTS} ORDER BY id")
_ANY = statement("SELECT 1 FROM accounts LIMIT 1")
# References to the row need not wait for such a lock.
_BY_ID = statement(f"{_ACCOUNTS} WHERE id = $1", lock=" FOR NO KEY UPDATE")
_BY_NAME = statement(f"{_ACCOUNTS} WHERE name = $1", lock=" FOR NO KEY UPDATE")
_ADD = statement(
    "INSERT INTO accounts (name, plan, per_minute, per_day, created_at_ms) VALUES ($1, $2, $3, $4, $5)"
    " ON CONFLICT (name) DO NOTHING RETURNING id"
)
_SET_PLAN = statement("UPDATE accounts SET plan = $2, per_minute = $3, per_day = $4 WHERE id = $1")


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
    rows = yield _ADD, (name, plan.name, plan.per_minute, plan.per_day, now_ms)
    if not rows:
        raise AccountExists(name)
    added = Account(rows[0][0], name, plan, now_ms)
    yield from record(now_ms, actor, "account", added.id, "added", None, {"name": name, **_plan_of(added)})
    return added


def set_plan(reference: str, plan: Plan, actor: str, now_ms: int) -> Script[Account]:
    """Raises AccountNotFound."""
    account = yield from find_account(reference)
    changed = replace(account, plan=plan)
    yield _SET_PLAN, (account.id, plan.name, plan.per_minute, plan.per_day)
    before, after = _plan_of(account), _plan_of(changed)
    yield from record_changes(now_ms, actor, "account", account.id, "plan_changed", before, after)
    return changed


def _plan_of(account: Account) -> dict[str, object]:
    plan = account.plan
    return {"plan": plan.name, "perMinute": plan.per_minute, "perDay": plan.per_day}


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

    async def all(self) -> list[Account]:
        return await self._database.read(all_accounts())

    async def set_plan(self, reference: str, plan: Plan, actor: str) -> Account:
        now_ms = self._clock.now_ms()
        return await self._database.write(lambda: set_plan(reference, plan, actor, now_ms), KEYRING)
