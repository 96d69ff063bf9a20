"""`petstore usage`: what an account has left, which of its keys are banned, what it did in the last days."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from petstore.cli.accounts import account_json
from petstore.cli.context import Session, with_store
from petstore.cli.groups import examples
from petstore.cli.output import (
    iso_day,
    iso_time,
    json_option,
    say,
    text_time,
    write_json,
    write_line,
    write_table,
)
from petstore.cli.types import ACCOUNT
from petstore.core.keys import Account, ApiKey, Caller
from petstore.core.limits.decision import Window
from petstore.core.limits.quota import SECOND_MS, view
from petstore.core.limits.usage import KeyBan, UsageReport

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

_DAYS = 30


class _Standing(msgspec.Struct, frozen=True):
    """Everything that the report shows, as of `now_ms`."""

    now_ms: int
    account: Account
    keys: list[ApiKey]
    report: UsageReport

    @property
    def windows(self) -> tuple[Window, Window]:
        """Both windows as the account's next request would find them."""
        plan = self.account.plan
        caller = Caller(0, self.account.id, plan.per_minute, plan.per_day)
        return view(self.report.windows, caller, self.now_ms)

    @property
    def bans(self) -> dict[int, KeyBan]:
        return {ban.key_id: ban for ban in self.report.bans}


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

    async def read(store: Store) -> _Standing:
        found = await store.keys.account(account)
        reference = str(found.id)
        report = await store.usage.report(found.id, now_ms, days=_DAYS)
        return _Standing(now_ms, found, await store.keys.keys(reference), report)

    standing = with_store(session, read)
    if as_json:
        write_json(_as_json(standing))
    else:
        _write(standing)


def _as_json(standing: _Standing) -> dict[str, object]:
    bans = standing.bans
    return {
        "account": account_json(standing.account),
        "windows": [
            {
                "name": window.name,
                "limit": window.limit,
                "remaining": window.remaining,
                "resetAt": iso_time(window.reset_at * SECOND_MS),
            }
            for window in standing.windows
        ],
        "keys": [
            {
                "id": key.id,
                "display": key.display,
                "state": key.state(standing.now_ms),
                "bannedUntil": iso_time(bans[key.id].banned_until_ms) if key.id in bans else None,
            }
            for key in standing.keys
        ],
        "days": [
            {
                "day": iso_day(day.day),
                "requests": day.requests,
                "refused": day.refused,
                "deprecated": day.deprecated,
            }
            for day in standing.report.days
        ],
    }


def _write(standing: _Standing) -> None:
    plan, bans = standing.account.plan, standing.bans
    write_line(f"{standing.account.name} (id {standing.account.id}), plan {plan.name}\n")
    write_table(
        ("WINDOW", "LIMIT", "REMAINING", "RESETS"),
        [
            (window.name, window.limit, window.remaining, text_time(window.reset_at * SECOND_MS))
            for window in standing.windows
        ],
    )
    if standing.keys:
        click.echo()
        write_table(
            ("KEY", "TEXT", "STATE", "BANNED UNTIL"),
            [
                (
                    key.id,
                    key.display,
                    "banned" if key.id in bans else key.state(standing.now_ms),
                    text_time(bans[key.id].banned_until_ms) if key.id in bans else "-",
                )
                for key in standing.keys
            ],
        )
    if standing.report.days:
        click.echo()
        write_table(
            ("DAY", "REQUESTS", "REFUSED", "DEPRECATED"),
            [(iso_day(day.day), day.requests, day.refused, day.deprecated) for day in standing.report.days],
        )
    else:
        say("\nNo requests in the last 30 days.")
