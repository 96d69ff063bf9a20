"""Accounts, for both databases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from petstore.core.accounts import Account, check_account_name, read_account_id
from petstore.core.contacts import check_addresses
from petstore.core.errors import AccountExists, AccountNotFound, Conflict
from petstore.core.limits.plans import LIMIT_COLUMNS, Plan, and_list
from petstore.core.moments import iso_moment
from petstore.transactions.account_pages import count_accounts, page_of_accounts, uses_of
from petstore.transactions.addresses import add_contacts
from petstore.transactions.journal import record, record_changes
from petstore.transactions.refusals import REMOVE_REFUSALS
from petstore.transactions.rows import ACCOUNT, placeholders, read_account, select
from petstore.transactions.script import (
    KEYRING,
    REVOCATION,
    Repository,
    Script,
    names_of,
    read,
    reads,
    statement,
    write,
)

# In statements that join them as `a`: neither suspended nor closed.
IS_IN_USE = "a.suspended_at_ms IS NULL AND a.closed_at_ms IS NULL"
_ACCOUNTS = f"SELECT {select(ACCOUNT)} FROM accounts"
_ALL = statement(f"{_ACCOUNTS} ORDER BY id")
ANY_ACCOUNT = statement("SELECT 1 FROM accounts LIMIT 1")
# References to the row need not wait for such a lock.
_BY_ID = statement(f"{_ACCOUNTS} WHERE id = $1", lock=" FOR NO KEY UPDATE")
_BY_NAME = statement(f"{_ACCOUNTS} WHERE name = $1", lock=" FOR NO KEY UPDATE")
_ADD = statement(
    f"INSERT INTO accounts (name, created_at_ms, plan, {select(LIMIT_COLUMNS)})"
    f" VALUES ($1, $2, $3, {placeholders(len(LIMIT_COLUMNS), 4)})"
    " ON CONFLICT (name) DO NOTHING RETURNING id"
)
_SET_STATE = statement("UPDATE accounts SET suspended_at_ms = $2, closed_at_ms = $3 WHERE id = $1")
FORGET_CUSTOMER = statement("DELETE FROM customers WHERE account_id = $1")
_OTHERS_NAME = statement("SELECT 1 FROM accounts WHERE name = $1 AND id <> $2")
_SET_NAME = statement("UPDATE accounts SET name = $2 WHERE id = $1")
_SET_PLAN = statement(
    "UPDATE accounts SET plan = $2,"
    f" {select([f'{column} = ${number}' for number, column in enumerate(LIMIT_COLUMNS, 3)])} WHERE id = $1"
)
_REVOKE = statement("UPDATE api_keys SET revoked_at_ms = $2 WHERE id = $1")
_NOT_REVOKED = statement(
    "SELECT id FROM api_keys WHERE account_id = $1 AND revoked_at_ms IS NULL ORDER BY id", lock=" FOR UPDATE"
)


def find_account(reference: str) -> Script[Account]:
    """Find an account by name, or by id in digits (no name is digits alone). Raises AccountNotFound.

    A transaction locks the account's row until its end.
    """
    number = read_account_id(reference)
    if number is not None:
        rows = yield _BY_ID, (number,)
    elif reference.isascii() and reference.isprintable():
        rows = yield _BY_NAME, (reference,)
    else:  # no name; PostgreSQL refuses some of it, such as U+0000
        rows = []
    return _only(rows, reference)


def get_account(account_id: int) -> Script[Account]:
    """Find an account by id, with the lock and the error of `find_account`."""
    return _only((yield _BY_ID, (account_id,)), str(account_id))


def _only(rows: list[Any], reference: str) -> Account:
    if not rows:
        raise AccountNotFound(reference)
    return read_account(rows[0])


def end_key(now_ms: int, key_id: int, actor: str) -> Script[None]:
    """Revoke a key that is not revoked, whose row the transaction has locked."""
    yield _REVOKE, (key_id, now_ms)
    before, after = {"revokedAt": None}, {"revokedAt": iso_moment(now_ms)}
    yield from record(now_ms, actor, "key", key_id, "revoked", before, after)


def _end_keys_of(now_ms: int, account_id: int, actor: str) -> Script[None]:
    """Revoke every key of an account, whose row the transaction has locked: so no key is added meanwhile."""
    for (key_id,) in (yield _NOT_REVOKED, (account_id,)):
        yield from end_key(now_ms, key_id, actor)


class Accounts(Repository):
    """The accounts of a store.

    `reference` is an account's name or its id in digits; methods that take one raise AccountNotFound.
    `actor` is for the journal.
    """

    @write(KEYRING, checks=True)
    def add(
        self, now_ms: int, name: str, plan: Plan, actor: str, *, addresses: Sequence[str] = ()
    ) -> Script[Account]:
        """Add an account, with the addresses of its contacts. Raises Invalid for what can't be a name or
        contacts, and AccountExists."""
        check_account_name(name)
        check_addresses(addresses)
        rows = yield _ADD, (name, now_ms, plan.name, *plan.limits)
        if not rows:
            raise AccountExists(name)
        added = Account(rows[0][0], name, plan, now_ms)
        members = {"name": name, **plan.members()}
        yield from record(now_ms, actor, "account", added.id, "added", None, members)
        yield from add_contacts(now_ms, "account", added.id, addresses, actor)
        return added

    find = reads(find_account)
    get = reads(get_account)
    page = reads(page_of_accounts)
    count = reads(count_accounts)
    uses = reads(uses_of)

    @read
    def names(self, ids: Iterable[int]) -> Script[dict[int, str]]:
        """The names of at most IDS_MAX accounts by id, of those that there are."""
        return names_of("accounts", tuple(ids))

    @read
    def all(self) -> Script[list[Account]]:
        """All accounts, by id. A service may have 100,000: no answer to a request is made of them."""
        return [read_account(row) for row in (yield _ALL, ())]

    @write(KEYRING)
    def set_plan(
        self, now_ms: int, reference: str, plan: Plan, actor: str, *, expected: Plan | None = None
    ) -> Script[Account]:
        """Acts on the account's next request; requests made so far still count.

        Raises Conflict for a closed account, and for one that has neither the expected plan nor this one.
        """
        account = yield from find_account(reference)
        account.check_open()
        current = account.plan
        if expected not in (None, current) and plan != current:
            raise Conflict(
                f"{account.name} has the plan {current.name} now: {and_list(current.phrases('requests'))}."
                " Repeat the change to replace it."
            )
        changed = replace(account, plan=plan)
        yield _SET_PLAN, (account.id, plan.name, *plan.limits)
        before, after = current.members(), plan.members()
        yield from record_changes(now_ms, actor, "account", account.id, "plan_changed", before, after)
        return changed

    @write(REVOCATION)
    def suspend(self, now_ms: int, reference: str, actor: str) -> Script[Account]:
        """Refuse the account's keys from their next request on. Raises Conflict for a closed account."""
        account = yield from find_account(reference)
        account.check_open()
        if account.suspended_at_ms is not None:
            return account
        changed = replace(account, suspended_at_ms=now_ms)
        return (yield from _set_state(now_ms, account, changed, "suspended", actor))

    @write(KEYRING)
    def resume(self, now_ms: int, reference: str, actor: str) -> Script[Account]:
        """End a suspension. Raises Conflict for a closed account."""
        account = yield from find_account(reference)
        account.check_open()
        if account.suspended_at_ms is None:
            return account
        changed = replace(account, suspended_at_ms=None)
        return (yield from _set_state(now_ms, account, changed, "resumed", actor))

    @write(KEYRING, checks=True)
    def rename(
        self, now_ms: int, reference: str, name: str, actor: str, *, expected: str | None = None
    ) -> Script[Account]:
        """Raises Invalid for what can't be a name, AccountExists, and Conflict for an account that has
        neither the expected name nor this one."""
        check_account_name(name)
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

    @write(REVOCATION)
    def close(self, now_ms: int, reference: str, actor: str) -> Script[Account]:
        """Revoke all keys of the account, which never gets new ones. Deletes its customer and its refused
        requests alone."""
        account = yield from find_account(reference)
        if account.closed_at_ms is not None:
            return account
        changed = replace(account, closed_at_ms=now_ms)
        yield from _set_state(now_ms, account, changed, "closed", actor)
        yield FORGET_CUSTOMER, (account.id,)
        yield from _end_keys_of(now_ms, account.id, actor)
        yield REMOVE_REFUSALS, (account.id,)
        return changed


def _set_state(now_ms: int, account: Account, changed: Account, action: str, actor: str) -> Script[Account]:
    yield _SET_STATE, (account.id, changed.suspended_at_ms, changed.closed_at_ms)
    before, after = {"state": account.state}, {"state": changed.state}
    yield from record(now_ms, actor, "account", account.id, action, before, after)
    return changed
