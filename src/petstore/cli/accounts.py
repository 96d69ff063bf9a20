"""`petstore accounts`: customers, their plans and states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from petstore.cli.contacts import contacts_command, email_option, say_unless_mailed
from petstore.cli.context import Session, read_store, with_store, with_store_on_a_full_disk
from petstore.cli.customers import customer_command
from petstore.cli.groups import LazyGroup
from petstore.cli.output import asks, confirm, echo_err, write_record, write_records, yes_option
from petstore.cli.records import LIMIT_HEADINGS, account_fields, account_record
from petstore.cli.types import ACCOUNT, WholeNumber, checked, options
from petstore.core.accounts import Account, check_account_name
from petstore.core.errors import Invalid
from petstore.core.limits.plans import LIMIT_COLUMNS, PLAN_NAMES, QUOTA_MAX, WINDOWS, Plan, resolve_plan

if TYPE_CHECKING:
    from petstore.wiring.administration import Store


@click.group(cls=LazyGroup)
def accounts() -> None:
    """Customers, and the plan that each of them has.

    An account holds a plan, and all its keys share the plan's limits. ACCOUNT is always a name or an id.
    """


_plan_options = options(
    click.option("--plan", required=True, type=click.Choice(PLAN_NAMES), help="The plan, by its name."),
    *(
        click.option(
            f"--per-{window.name}",
            type=WholeNumber(1, QUOTA_MAX),
            metavar="N",
            help=f"Requests {window.precise_words}; enterprise only.",
        )
        for window in WINDOWS
    ),
)


def _read_plan(name: str, numbers: dict[str, int | None]) -> Plan:
    try:
        return resolve_plan(name, *(numbers[column] for column in LIMIT_COLUMNS))
    except Invalid as error:
        raise click.UsageError(error.message, click.get_current_context()) from None


@accounts.offers(
    "add",
    "petstore accounts add shop --plan free --email anna@example.com",
    "petstore accounts add zoo --plan enterprise --per-minute 5000 --per-day 2000000",
)
@click.argument("name", callback=checked(check_account_name))
@_plan_options
@email_option
def add_account(
    session: Session,
    /,
    name: str,
    plan: str,
    addresses: tuple[str, ...],
    as_json: bool,
    **numbers: int | None,
) -> None:
    """Add a customer.

    NAME is 1 to 64 letters (A to Z), digits, dots, dashes or underscores, not digits alone. The
    enterprise plan takes the two numbers that were agreed.
    """
    chosen = _read_plan(plan, numbers)
    added = with_store(
        session, lambda store: store.accounts.add(name, chosen, session.actor, addresses=addresses)
    )
    _write_account(added, as_json)
    if addresses:
        say_unless_mailed(session)
    if not as_json:
        echo_err(f"Next: petstore keys issue {added.name}")


@accounts.offers("list", "petstore accounts list")
def list_accounts(session: Session, as_json: bool) -> None:
    """List all customers, in the order of their ids."""
    found = read_store(session, lambda store: store.accounts.all())
    write_records(
        [account_record(account) for account in found],
        {
            "ID": "id",
            "NAME": "name",
            "PLAN": "plan",
            **LIMIT_HEADINGS,
            "STATE": "state",
            "CREATED": "createdAt",
        },
        as_json,
        empty="There are no accounts yet: petstore accounts add NAME --plan free",
    )


@accounts.offers("show", "petstore accounts show shop", "petstore accounts show 2 --json")
@click.argument("account", type=ACCOUNT)
def show_account(session: Session, account: str, as_json: bool) -> None:
    """Show one customer.

    What it has used is shown by `petstore usage`, its keys by `petstore keys list`.
    """
    _write_account(read_store(session, lambda store: store.accounts.find(account)), as_json)


@accounts.offers(
    "set-plan",
    "petstore accounts set-plan shop --plan business",
    "petstore accounts set-plan zoo --plan enterprise --per-minute 9000 --per-day 4000000",
)
@click.argument("account", type=ACCOUNT)
@_plan_options
def set_plan(session: Session, /, account: str, plan: str, as_json: bool, **numbers: int | None) -> None:
    """Give a customer another plan.

    Acts on the account's next request. What was used in the current minute and day stays used.
    """
    chosen = _read_plan(plan, numbers)
    changed = with_store(session, lambda store: store.accounts.set_plan(account, chosen, session.actor))
    _write_account(changed, as_json)


@accounts.offers("suspend", "petstore accounts suspend shop")
@click.argument("account", type=ACCOUNT)
def suspend_account(session: Session, account: str, as_json: bool) -> None:
    """Refuse a customer's keys until `accounts resume`.

    Each request with one of them is answered with 403 and costs nothing, from the next one on. Works on a
    full disk too, as `keys revoke` does.
    """
    suspended = with_store_on_a_full_disk(
        session, lambda store: store.accounts.suspend(account, session.actor)
    )
    _write_account(suspended, as_json)


@accounts.offers("resume", "petstore accounts resume shop")
@click.argument("account", type=ACCOUNT)
def resume_account(session: Session, account: str, as_json: bool) -> None:
    """End a customer's suspension; the same keys work again."""
    resumed = with_store(session, lambda store: store.accounts.resume(account, session.actor))
    _write_account(resumed, as_json)


@accounts.offers("rename", "petstore accounts rename shop pet-shop")
@click.argument("account", type=ACCOUNT)
@click.argument("name", callback=checked(check_account_name))
def rename_account(session: Session, account: str, name: str, as_json: bool) -> None:
    """Give a customer another name.

    Keys, plan and use stay. NAME is as for `accounts add`.
    """
    renamed = with_store(session, lambda store: store.accounts.rename(account, name, session.actor))
    _write_account(renamed, as_json)


@accounts.offers("close", "petstore accounts close shop", "petstore accounts close 2 --yes")
@click.argument("account", type=ACCOUNT)
@yes_option
def close_account(session: Session, account: str, yes: bool, as_json: bool) -> None:
    """Close a customer's account for good and revoke its keys.

    On a terminal it shows the account and asks first. What is known of the customer and of its refused
    requests is deleted, and nothing else: the name stays taken. A closed account gets no keys, no other plan,
    and is never resumed. Its open orders hold their animals until you deliver or cancel them:
    `petstore orders list --account NAME`. Works on a full disk too.
    """
    now_ms = session.clock.now_ms()

    async def find(store: Store) -> tuple[Account, int]:
        to_close = await store.accounts.find(account)
        keys = await store.keys.of_account(str(to_close.id))
        return to_close, sum(key.state(now_ms) == "active" for key in keys)

    reference = account
    if asks(yes):
        to_close, working = with_store_on_a_full_disk(session, find)
        confirm(
            f"Account {to_close.name!r} (id {to_close.id}, plan {to_close.plan.name}, {to_close.state}) has"
            f" {working} active {'key' if working == 1 else 'keys'}. Close it for good?"
        )
        reference = str(to_close.id)  # the name may pass to another account
    closed = with_store_on_a_full_disk(session, lambda store: store.accounts.close(reference, session.actor))
    _write_account(closed, as_json)


def _write_account(account: Account, as_json: bool) -> None:
    write_record(account_record(account), account_fields(account), as_json)


accounts.add_command(customer_command)
accounts.add_command(
    contacts_command("account", click.argument("reference", type=ACCOUNT, metavar="ACCOUNT"))
)
