"""`petstore keys check`: the owner of a key, and whether a request with it would be accepted now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from petstore.cli.context import Session, read_store
from petstore.cli.groups import EXIT_REFUSED, command
from petstore.cli.output import echo_err, moment, write_fields, write_json
from petstore.cli.records import KeyDetails, details_of, key_fields
from petstore.core.digests import digest
from petstore.core.keys import is_wellformed
from petstore.core.stages import Stage

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

_READ_MAX = 4_096


class _Finding(msgspec.Struct, frozen=True):
    """`reason` is empty for a key that would be accepted."""

    reason: str
    found: KeyDetails | None = None


@command(
    "check",
    "petstore keys check                       # asks for the key, and does not show it",
    "petstore keys check < shop.key",
    "petstore keys check < shop.key > /dev/null && echo accepted",
)
def check_key(session: Session, as_json: bool) -> None:
    """Say whose key it is and whether it would be accepted.

    Reads the key from standard input, or asks for it on a terminal. Exit code 0 only when a request with it
    would be accepted: it exists, is active and not banned, and its account is not suspended. How much of the
    account's limits is left is shown by `petstore usage`. The check itself costs the account nothing.
    """
    secret = _read_secret()
    now_ms = session.clock.now_ms()
    if is_wellformed(secret):
        finding = read_store(session, lambda store: _look_up(store, secret, session.settings.stage, now_ms))
    else:
        finding = _Finding("not a key: its form or its checksum is wrong, so a character may be missing")
    if as_json:
        write_json(_as_json(finding, now_ms))
    elif finding.found is not None:
        write_fields({**key_fields(finding.found, now_ms), "ban": finding.found.ban})
    if finding.reason:
        if not as_json:
            echo_err(f"petstore: The key would be refused: {finding.reason}.")
        raise click.exceptions.Exit(EXIT_REFUSED)


def _read_secret() -> str:
    """One key, from a hidden prompt or from standard input; text outside ASCII is not a key."""
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
        return _Finding(f"it is for {stage.other}, but this service is {stage}")
    key = await store.keys.by_digest(digest(secret.encode("ascii")))
    if key is None:
        return _Finding("unknown here: it was issued for another database, or never")
    found = await details_of(store, key, now_ms)
    reason = key.state(now_ms)
    if reason == "active" and found.account.state == "suspended":
        reason = "its account is suspended"
    elif reason == "active":
        reason = "" if found.banned_until_ms is None else f"banned {found.ban}"
    return _Finding(reason, found)


def _as_json(finding: _Finding, now_ms: int) -> dict[str, object]:
    found = finding.found
    key, account = (found.key, found.account) if found else (None, None)
    return {
        "accepted": not finding.reason,
        "reason": finding.reason or None,
        "keyId": key.id if key else None,
        "state": key.state(now_ms) if key else None,
        "access": key.access if key else None,
        "accountId": account.id if account else None,
        "account": account.name if account else None,
        "expiresAt": moment(key.expires_at_ms) if key else None,
        "bannedUntil": moment(found.banned_until_ms) if found else None,
    }
