"""`petstore usage`: an account's remaining requests, its banned keys and its last days; bills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from petstore.cli.billing import write_bill
from petstore.cli.context import Session, read_store
from petstore.cli.groups import command
from petstore.cli.output import Columns, echo_err, moment, write_json, write_line, write_records, write_table
from petstore.cli.records import account_record
from petstore.cli.types import ACCOUNT, DAY, MONTH, WholeNumber, options
from petstore.core.accounts import Account
from petstore.core.durations import SECOND_MS
from petstore.core.keys import ApiKey
from petstore.core.limits.quota import view
from petstore.core.limits.usage import DEPRECATED_DAYS, UsageReport
from petstore.core.lists.bills import Bill
from petstore.core.moments import iso_day
from petstore.core.refusals import Cause, causes_now

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

_Days = tuple[int, int] | None
_DAYS = 30
_DAYS_MAX = 3_660


_bill_options = options(
    click.option("--all", "everybody", is_flag=True, help="The bill of all accounts."),
    click.option("--month", type=MONTH, metavar="MONTH", help="Print the bill of a month such as 2026-10."),
    click.option("--from", "first", type=DAY, metavar="DAY", help="The bill's first UTC day."),
    click.option("--to", "last", type=DAY, metavar="DAY", help="The bill's last UTC day."),
    click.option("--sum", "summed", is_flag=True, help="One row for consecutive days on one plan."),
    click.option("--csv", "as_csv", is_flag=True, help="Print CSV, for a bill."),
)


@command(
    "usage",
    "petstore usage shop",
    "petstore usage --deprecated",
    "petstore usage --all --month 2026-10 --csv > 2026-10.csv",
    "petstore usage --all --from 2026-10-01 --to 2026-10-15 --sum",
)
@click.argument("account", type=ACCOUNT, required=False)
@click.option(
    "--days",
    type=WholeNumber(1, _DAYS_MAX),
    metavar="N",
    help=f"How many days to show, at most {_DAYS_MAX:,}.  [default: {_DAYS}]",
)
@click.option(
    "--deprecated",
    is_flag=True,
    help=f"List who called GET /pets/{{petId}} in the last {DEPRECATED_DAYS} days.",
)
@_bill_options
def usage(
    session: Session, /, account: str | None, days: int | None, deprecated: bool, as_json: bool, **asked: Any
) -> None:
    """Show an account's limits, bans and days, or print bills.

    Days are UTC days. DEPRECATED counts calls of GET /pets/{petId}. A running
    server writes its counters about once a second, so the report is at most that old.

    With --month, or --from and --to, it prints a bill: a row for each account and day, days without requests
    too, with the plan at the day's end. Closed accounts are in it until the day on which they were closed.
    """
    if deprecated:
        if account is not None or days is not None or any(asked.values()):
            raise click.UsageError("--deprecated lists all its callers, and goes with --json alone.")
        _list_callers(session, as_json)
        return
    bill = _read_bill(account, **asked)
    if bill is not None:
        if days is not None or (as_json and asked["as_csv"]):
            raise click.UsageError("A bill takes no --days, and either --csv or --json.")
        write_bill(session, account, bill, "csv" if asked["as_csv"] else "json" if as_json else "table")
        return
    if account is None:
        raise click.UsageError(
            "Give an ACCOUNT for its report, or the days of a bill: --month, or --from and --to."
        )
    _report(session, account, days or _DAYS, as_json)


def _read_bill(
    account: str | None,
    *,
    everybody: bool,
    month: _Days,
    first: _Days,
    last: _Days,
    summed: bool,
    as_csv: bool,
) -> Bill | None:
    """The bill that the options ask for; None without days. Raises UsageError."""
    if month is None and first is None and last is None:
        for option, given in (("--all", everybody), ("--sum", summed), ("--csv", as_csv)):
            if given:
                raise click.UsageError(f"{option} needs the days of a bill: --month, or --from and --to.")
        return None
    if (account is None) != everybody:
        raise click.UsageError("Give an ACCOUNT for its bill, or --all.")
    if month is not None:
        if first is not None or last is not None:
            raise click.UsageError("Give either --month, or --from and --to.")
        return Bill(None, *month, summed)
    if first is None or last is None:
        raise click.UsageError("--from and --to go together; both days are in the bill.")
    if first > last:
        raise click.UsageError("--from is after --to.")
    return Bill(None, first[0], last[1], summed)


def _list_callers(session: Session, as_json: bool) -> None:
    now_ms = session.clock.now_ms()
    use = read_store(session, lambda store: store.usage.deprecated_callers(now_ms))
    records = [
        {
            "accountId": caller.account_id,
            "account": caller.account,
            "calls": caller.calls,
            "lastDay": iso_day(caller.last_day),
        }
        for caller in use.callers
    ]
    write_records(
        records,
        {"ID": "accountId", "ACCOUNT": "account", "CALLS": "calls", "LAST DAY": "lastDay"},
        as_json,
        empty="Nobody called it.",
    )
    if use.is_cut:
        echo_err("There are more: these are the newest calls only.")


def _report(session: Session, account: str, days: int, as_json: bool) -> None:
    now_ms = session.clock.now_ms()

    async def read(store: Store) -> dict[str, Any]:
        found = await store.accounts.find(account)
        report = await store.usage.report(now_ms, found.id, days=days)
        return _record(now_ms, found, await store.keys.of_account(str(found.id)), report)

    record = read_store(session, read)
    if as_json:
        write_json(record)
    else:
        _write(record, days)


def _record(now_ms: int, account: Account, keys: list[ApiKey], report: UsageReport) -> dict[str, Any]:
    """The windows are as the account's next request would find them."""
    banned_until = {ban.key_id: moment(ban.banned_until_ms) for ban in report.bans}
    windows = view(report.windows, account.plan.limits, now_ms)
    return {
        "account": account_record(account),
        "refusedNow": list(map(_cause_record, causes_now(account, keys, report.bans, windows, now_ms))),
        "windows": [
            {
                "name": window.name,
                "limit": window.limit,
                "remaining": window.remaining,
                "resetAt": moment(window.reset_at * SECOND_MS),
            }
            for window in windows
        ],
        "keys": [
            {
                "id": key.id,
                "display": key.display,
                "state": key.state(now_ms),
                "bannedUntil": banned_until.get(key.id),
            }
            for key in keys
        ],
        "days": [
            {
                "day": iso_day(day.day),
                "requests": day.requests,
                "refused": day.refused,
                "deprecated": day.deprecated,
            }
            for day in report.days
        ],
    }


def _cause_record(cause: Cause) -> dict[str, Any]:
    since, until = moment(cause.since_ms), moment(cause.until_ms)
    return {"what": cause.reason, "since": since, "then": cause.effect, "until": until}


def _write(record: dict[str, Any], days: int) -> None:
    account = record["account"]
    state = "" if account["state"] == "active" else f", {account['state']}"
    write_line(f"{account['name']} (id {account['id']}), plan {account['plan']}{state}\n")
    for cause in record["refusedNow"]:
        since, until = (f" {word} {cause[word]}" if cause[word] else "" for word in ("since", "until"))
        write_line(f"{cause['what']}{since}: {cause['then']}{until}.\n")
    write_table(
        record["windows"],
        {"WINDOW": "name", "LIMIT": "limit", "REMAINING": "remaining", "RESETS": "resetAt"},
    )
    if record["keys"]:
        click.echo()
        columns: Columns = {
            "KEY": "id",
            "TEXT": "display",
            "STATE": lambda key: "banned" if key["bannedUntil"] else key["state"],
            "BANNED UNTIL": "bannedUntil",
        }
        write_table(record["keys"], columns)
    if record["days"]:
        click.echo()
        write_table(
            record["days"],
            {"DAY": "day", "REQUESTS": "requests", "REFUSED": "refused", "DEPRECATED": "deprecated"},
        )
    else:
        echo_err(f"\nNo requests in the last {days} days.")
