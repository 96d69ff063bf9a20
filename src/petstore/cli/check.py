"""`petstore keys check`: the owner of a key, and whether a request with it would be accepted now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from petstore.cli.context import Session, with_store
from petstore.cli.groups import EXIT_REFUSED, examples
from petstore.cli.output import echo_err, json_option, moment, write_fields, write_json
from petstore.cli.records import key_fields
from petstore.core.accounts import Account
from petstore.core.digests import digest
from petstore.core.keys import ApiKey, is_wellformed
from petstore.core.stages import Stage

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

_READ_MAX = 4_096


class _Finding(msgspec.Struct, frozen=True):
    """`reason` is empty for a key that would be accepted."""

    reason: str
    key: ApiKey | None = None
    account: Account | None = None
    banned_until_ms: int | None = None


@click.command(
    "check",
    epilog=examples(
        "petstore keys check                       # asks for the key, and does not show it",
        "petstore keys check < shop.key",
        "petstore keys check < shop.key > /dev/null && echo accepted",
    ),
)
@json_option
@click.pass_obj
def check_key(session: Session, as_json: bool) -> None:
    """Say whose key it is and whether it would be accepted.

    Reads the key from standard input, or asks for it on a terminal. Exit code 0 only when a request with it
    would be accepted: it exists, is active and not banned, and its account is not suspended. How much of the
    account's limits is left is shown by `petstore usage`. The check itself costs the account nothing.
    """
    secret = _read_secret()
    now_ms = session.clock.now_ms()
    if is_wellformed(secret):
        finding = with_store(session, lambda store: _look_up(store, secret, session.settings.stage, now_ms))
    else:
        finding = _Finding("not a key: its form or its checksum is wrong, so a character may be missing")
    if as_json:
        write_json(_as_json(finding, now_ms))
    elif finding.key is not None:
        _write_finding(finding, now_ms)
    if finding.reason:
        if not as_json:
            echo_err(f"petstore: The key would be refused: {finding.reason}.")
        raise click.exceptions.Exit(EXIT_REFUSED)


def _read_secret() -> str:
    """One key, from a hidden prompt or from standard input; other text than ASCII is no key."""
    if sys.stdin.isatty():
        text = str(click.prompt("Key", hide_input=True, err=True))
    else:
        text = sys.stdin.buffer.read(_READ_MAX).decode("ascii", errors="replace")
    if not text.strip():
        raise click.UsageError(
            "There is no key on standard input; use petstore keys check < FILE.", click.get_current_context()
        )
    return text.strip()


async def _look_up(store: Store, secret: str, stage: Stage | None, now_ms: int) -> _Finding:
    if stage is not None and secret.startswith(stage.other.prefix):
        return _Finding(f"it is for {stage.other}, and this is {stage}")
    key = await store.keys.find_key(digest(secret.encode("ascii")))
    if key is None:
        return _Finding("unknown here: it was issued for another database, or never")
    account = await store.accounts.find(str(key.account_id))
    report = await store.usage.report(account.id, now_ms, days=1)
    until_ms = next((ban.banned_until_ms for ban in report.bans if ban.key_id == key.id), None)
    reason = key.state(now_ms)
    if reason == "active" and account.state == "suspended":
        reason = "its account is suspended"
    elif reason == "active":
        reason = f"banned until {moment(until_ms)}" if until_ms is not None else ""
    return _Finding(reason, key, account, until_ms)


def _as_json(finding: _Finding, now_ms: int) -> dict[str, object]:
    key, account = finding.key, finding.account
    return {
        "accepted": not finding.reason,
        "reason": finding.reason or None,
        "keyId": key.id if key else None,
        "state": key.state(now_ms) if key else None,
        "access": key.access if key else None,
        "accountId": account.id if account else None,
        "account": account.name if account else None,
        "expiresAt": moment(key.expires_at_ms) if key else None,
        "bannedUntil": moment(finding.banned_until_ms),
    }


def _write_finding(finding: _Finding, now_ms: int) -> None:
    key, account = finding.key, finding.account
    assert key is not None
    assert account is not None
    write_fields(
        {
            **key_fields(key, account, now_ms),
            "ban": f"until {moment(finding.banned_until_ms)}" if finding.banned_until_ms else "none",
        }
    )
