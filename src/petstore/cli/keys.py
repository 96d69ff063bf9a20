"""`petstore keys`: issue, list, rotate, revoke and unban. `keys check` is in check.py."""

from __future__ import annotations

import click

from petstore.cli.check import check_key
from petstore.cli.context import Session, with_store
from petstore.cli.groups import LazyGroup, examples
from petstore.cli.output import echo_err, json_option, moment, write_json, write_record, write_records
from petstore.cli.types import ACCOUNT, ID, Duration, checked
from petstore.core.durations import format_duration
from petstore.core.errors import StoreFull
from petstore.core.keys import Access, ApiKey, IssuedKey, check_label


@click.group(cls=LazyGroup)
def keys() -> None:
    """The keys of customers' programs.

    A key is shown once, when it is issued. Only its digest is kept, so nobody can look it up afterwards.
    KEY_ID is the number that `petstore keys list` shows, never the key itself.
    """


@keys.command(
    "issue",
    epilog=examples(
        "petstore keys issue shop",
        'petstore keys issue shop --label "web site" --expires 90d',
        "petstore keys issue shop --access read",
        "petstore keys issue shop > shop.key      # the file holds the key and nothing else",
    ),
)
@click.argument("account", type=ACCOUNT)
@click.option(
    "--label", default="", callback=checked(check_label), metavar="TEXT", help="What the key is for."
)
@click.option("--expires", type=Duration(), metavar="DURATION", help="How long it works, such as 90d.")
@click.option(
    "--access",
    type=click.Choice([access.value for access in Access]),
    default=Access.WRITE.value,
    show_default=True,
    help="What it may do; each level includes the one before.",
)
@json_option
@click.pass_obj
def issue_key(
    session: Session, account: str, label: str, expires: int | None, access: str, as_json: bool
) -> None:
    """Issue a key and print it, this once.

    Standard output holds the key alone; everything else is said on standard error. Without --expires the
    key works until it is revoked. A `read` key lists, which is enough for a published site. A `write` key
    also adds animals and places orders. A `manage` key, for the store's own programs, changes all of them.
    """
    settings = session.settings
    expires_at_ms = None if expires is None else session.clock.now_ms() + expires
    issued = with_store(
        session,
        lambda store: store.keys.issue(
            account,
            settings.environment,
            session.actor,
            label=label,
            expires_at_ms=expires_at_ms,
            access=Access(access),
        ),
    )
    labelled = f", label {label!r}" if label else ""
    ends = "" if expires_at_ms is None else f", expires {moment(expires_at_ms)}"
    remark = f"Key {issued.record.id} for account {account!r}, access {access}{labelled}{ends}"
    _show_secret(session, issued, as_json, remark)


@keys.command("list", epilog=examples("petstore keys list shop", "petstore keys list shop --json"))
@click.argument("account", type=ACCOUNT)
@json_option
@click.pass_obj
def list_keys(session: Session, account: str, as_json: bool) -> None:
    """List an account's keys.

    Shows the beginning and the last four characters of each: the rest is not kept. A running server writes
    the last use about once a second.
    """
    found = with_store(session, lambda store: store.keys.keys(account))
    now_ms = session.clock.now_ms()
    write_records(
        [key_record(key, now_ms) for key in found],
        {
            "ID": "id",
            "KEY": "display",
            "LABEL": lambda key: key["label"] or "-",
            "ACCESS": "access",
            "STATE": "state",
            "CREATED": "createdAt",
            "EXPIRES": "expiresAt",
            "LAST USED": "lastUsedAt",
        },
        as_json,
        empty=f"The account has no keys yet: petstore keys issue {account}",
    )


@keys.command(
    "rotate",
    epilog=examples(
        "petstore keys rotate 3",
        "petstore keys rotate 3 --overlap 7d",
        "petstore keys rotate 3 --overlap 0       # the old key ends at once",
    ),
)
@click.argument("key_id", type=ID)
@click.option(
    "--overlap",
    type=Duration(zero=True),
    metavar="DURATION",
    help="How long the old key goes on working. Default: PETSTORE_KEY_ROTATION_OVERLAP (24h).",
)
@json_option
@click.pass_obj
def rotate_key(session: Session, key_id: int, overlap: int | None, as_json: bool) -> None:
    """Replace a key by a new one, and print that.

    The new key has the same account, label, access and expiry; the old one goes on working for the overlap.
    Standard output holds the new key alone. A key that has leaked should be revoked instead.
    """
    settings = session.settings
    overlap_ms = settings.key_rotation_overlap_ms if overlap is None else overlap
    issued = with_store(
        session,
        lambda store: store.keys.rotate(key_id, settings.environment, overlap_ms, session.actor),
    )
    lasts = f"for {format_duration(overlap_ms)} at most" if overlap_ms else "no longer"
    ends = f" (expires {moment(issued.record.expires_at_ms)})" if issued.record.expires_at_ms else ""
    remark = f"Key {issued.record.id}{ends} replaces key {key_id}, which works {lasts}"
    _show_secret(session, issued, as_json, remark)


@keys.command("revoke", epilog=examples("petstore keys revoke 3"))
@click.argument("key_id", type=ID)
@json_option
@click.pass_obj
def revoke_key(session: Session, key_id: int, as_json: bool) -> None:
    """End a key for good; its next request is refused.

    There is no way back: issue a new key instead. Revoking a revoked key changes nothing. Works on a full
    disk too, with the room that the server keeps back for it.
    """
    file = session.backend.file
    had_reserve = file is not None and file.has_reserve()
    try:
        key = with_store(session, lambda store: store.keys.revoke(key_id, session.actor))
    except StoreFull:  # without a running server SQLite can't even make its log
        if file is None or not file.give_up_reserve():
            raise
        key = with_store(session, lambda store: store.keys.revoke(key_id, session.actor))
    if file is not None and had_reserve and not file.has_reserve():
        echo_err("The disk is full: the room that was kept back for this is used up. Make room.")
    _write_key(session, key, as_json)


@keys.command("unban", epilog=examples("petstore keys unban 3"))
@click.argument("key_id", type=ID)
@json_option
@click.pass_obj
def unban_key(session: Session, key_id: int, as_json: bool) -> None:
    """Lift a key's ban, and forget what led to it.

    Acts on its next request. `petstore usage ACCOUNT` shows which keys are banned. Unbanning a key without
    a ban clears its strikes.
    """
    key = with_store(session, lambda store: store.keys.pardon(key_id, session.actor))
    _write_key(session, key, as_json)


keys.add_command(check_key)


def key_record(key: ApiKey, now_ms: int) -> dict[str, object]:
    """A key as commands show it; never its text."""
    return {
        "id": key.id,
        "display": key.display,
        "label": key.label,
        "access": key.access,
        "state": key.state(now_ms),
        "createdAt": moment(key.created_at_ms),
        "expiresAt": moment(key.expires_at_ms),
        "lastUsedAt": moment(key.last_used_at_ms),
    }


def _show_secret(session: Session, issued: IssuedKey, as_json: bool, remark: str) -> None:
    """Show a new key's text; no other function does. Raises ClickException when it can't be printed."""
    key = issued.record
    if not as_json:
        echo_err(f"{remark}. It is shown only now:")
    try:
        if as_json:
            write_json({"key": issued.secret, **key_record(key, session.clock.now_ms())})
        else:
            click.echo(issued.secret)
    except OSError as error:
        raise click.ClickException(
            f"Key {key.id} was issued but could not be printed ({error.strerror}), so nobody has it:"
            f" petstore keys revoke {key.id}, then issue another."
        ) from error


def _write_key(session: Session, key: ApiKey, as_json: bool) -> None:
    record = key_record(key, session.clock.now_ms())
    fields = {
        "key": f"{key.id} ({key.display})",
        "label": key.label or "-",
        "access": key.access,
        "state": record["state"],
        "expires": record["expiresAt"],
        "last used": record["lastUsedAt"],
    }
    write_record(record, fields, as_json)
