"""`petstore usage`: an account's remaining requests, its banned keys, and its last 30 days."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from petstore.cli.accounts import account_record
from petstore.cli.context import Session, with_store
from petstore.cli.groups import examples
from petstore.cli.output import (
    Columns,
    echo_err,
    iso_day,
    json_option,
    moment,
    write_json,
    write_line,
    write_table,
)
from petstore.cli.types import ACCOUNT
from petstore.core.accounts import Account
from petstore.core.durations import SECOND_MS
from petstore.core.keys import ApiKey, Caller
from petstore.core.limits.quota import view
from petstore.core.limits.usage import UsageReport

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

_DAYS = 30


@click.command(epilog=examples("petstore usage shop", "petstore usage shop --json"))
@click.argument("account", type=ACCOUNT)
@json_option
@click.pass_obj
def usage(session: Session, account: str, as_json: bool) -> None:
    """Show an account's limits, bans and last 30 days.

    Days are UTC days. DEPRECATED counts calls of GET /pets/{petId}, which ends in December 2030. A running
    server writes its counters about once a second, so the report is at most that old.
    """
    now_ms = session.clock.now_ms()

    async def read(store: Store) -> dict[str, Any]:
        found = await store.accounts.find(account)
        report = await store.usage.report(found.id, now_ms, days=_DAYS)
        return _record(now_ms, found, await store.keys.keys(str(found.id)), report)

    record = with_store(session, read)
    if as_json:
        write_json(record)
    else:
        _write(record)


def _record(now_ms: int, account: Account, keys: list[ApiKey], report: UsageReport) -> dict[str, Any]:
    """The windows are as the account's next request would find them."""
    caller = Caller(0, account.id, account.plan.per_minute, account.plan.per_day)
    banned_until = {ban.key_id: moment(ban.banned_until_ms) for ban in report.bans}
    return {
        "account": account_record(account),
        "windows": [
            {
                "name": window.name,
                "limit": window.limit,
                "remaining": window.remaining,
                "resetAt": moment(window.reset_at * SECOND_MS),
            }
            for window in view(report.windows, caller, now_ms)
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


def _write(record: dict[str, Any]) -> None:
    account = record["account"]
    write_line(f"{account['name']} (id {account['id']}), plan {account['plan']}\n")
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
        echo_err("\nNo requests in the last 30 days.")
