"""`petstore bans`: every key that is banned now."""

from __future__ import annotations

from petstore.cli.context import Session, read_store
from petstore.cli.groups import command
from petstore.cli.output import moment, write_records
from petstore.core.limits.usage import BannedKey


@command("bans", "petstore bans", "petstore bans --json")
def bans(session: Session, as_json: bool) -> None:
    """List the keys that are banned now.

    A key is banned when it goes on after many 429 answers, first for 1 minute, then for 5, 15 and 60 unless
    PETSTORE_BAN_DURATIONS says otherwise. A ban ends by itself. A running server writes bans about once a
    second. Revoked and expired keys are left out.
    """
    now_ms = session.clock.now_ms()
    found = read_store(session, lambda store: store.usage.bans(now_ms))
    write_records(
        [_record(ban) for ban in found],
        {
            "ACCOUNT": "account",
            "KEY": "keyId",
            "TEXT": "display",
            "LABEL": lambda ban: ban["label"] or "-",
            "LEVEL": "level",
            "UNTIL": "bannedUntil",
            "TO UNBAN": lambda ban: f"petstore keys unban {ban['keyId']}",
        },
        as_json,
        empty="No key is banned.",
    )


def _record(ban: BannedKey) -> dict[str, object]:
    return {
        "accountId": ban.account_id,
        "account": ban.account,
        "keyId": ban.key_id,
        "display": ban.display,
        "label": ban.label,
        "level": ban.level,
        "bannedUntil": moment(ban.banned_until_ms),
    }
