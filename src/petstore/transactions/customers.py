"""What staff know of customers, for both databases: a row for each account of which something is known."""

from __future__ import annotations

from msgspec.structs import astuple

from petstore.core.customers import NOBODY, Customer, CustomerChangedMeanwhile, changed_members
from petstore.transactions.accounts import FORGET_CUSTOMER, find_account
from petstore.transactions.journal import record
from petstore.transactions.rows import CUSTOMER, placeholders, select
from petstore.transactions.script import NO_EFFECT, Repository, Script, reads, statement, write

_BY_ID = statement(f"SELECT {select(CUSTOMER[1:])} FROM customers WHERE account_id = $1")
_COLUMNS = select([f"{column} = excluded.{column}" for column in CUSTOMER[1:]])
_SET = statement(
    f"INSERT INTO customers ({select(CUSTOMER)}) VALUES ({placeholders(len(CUSTOMER))})"
    f" ON CONFLICT (account_id) DO UPDATE SET {_COLUMNS}"
)


def _get(account_id: int) -> Script[Customer]:
    """The customer of an account; NOBODY where nothing is known."""
    rows = yield _BY_ID, (account_id,)
    return Customer(*rows[0]) if rows else NOBODY


class Customers(Repository):
    """The customers of a store."""

    of = reads(_get)

    @write(NO_EFFECT)
    def set(
        self, now_ms: int, reference: str, customer: Customer, actor: str, *, expected: Customer | None = None
    ) -> Script[Customer]:
        """Replace what is known of an account, given by its name or its id in digits; NOBODY deletes it.

        Raises AccountNotFound, Conflict for a closed account, and CustomerChangedMeanwhile where something
        else than `expected` is known.
        """
        account = yield from find_account(reference)
        account.check_open()
        before = yield from _get(account.id)
        if expected not in (None, before) and customer != before:
            raise CustomerChangedMeanwhile(before)
        if customer == NOBODY:
            yield FORGET_CUSTOMER, (account.id,)
        elif customer != before:
            yield _SET, (account.id, *astuple(customer))
        if changed := changed_members(before, customer):
            said = {"customer": ", ".join(changed)}
            yield from record(now_ms, actor, "account", account.id, "customer_changed", said, said)
        return customer
