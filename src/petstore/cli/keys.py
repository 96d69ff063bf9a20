"""`petstore keys`: issue, list, show, rotate, revoke and unban. `keys list` is in key_lists.py,
`keys check` in check.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from petstore.cli.check import check_key
from petstore.cli.context import Session, read_store, with_store, with_store_on_a_full_disk
from petstore.cli.groups import LazyGroup
from petstore.cli.key_lists import list_keys
from petstore.cli.output import asks, confirm, echo_err, moment, print_once, write_record, yes_option
from petstore.cli.records import KeyDetails, details_of, key_fields, key_record, webhook_record
from petstore.cli.types import ACCOUNT, ID, Duration, checked
from petstore.core.durations import format_duration
from petstore.core.keys import Access, IssuedKey, check_label
from petstore.core.webhooks import Webhook

if TYPE_CHECKING:
    from petstore.wiring.administration import Store


@click.group(cls=LazyGroup)
def keys() -> None:
    """The keys of customers' programs.

    A key is shown once, when it is issued. Only its digest is kept, so nobody can look it up afterwards.
    KEY_ID is the number that `petstore keys list` shows, never the key itself.
    """


@keys.offers(
    "issue",
    "petstore keys issue shop",
    'petstore keys issue shop --label "web site" --expires 90d',
    "petstore keys issue shop --access manage",
    "petstore keys issue shop > shop.key      # the file holds the key and nothing else",
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

    async def issue(store: Store) -> tuple[str, IssuedKey]:
        state = (await store.accounts.find(account)).state
        return state, await store.keys.issue(
            account,
            settings.key_environment,
            session.actor,
            label=label,
            expires_at_ms=expires_at_ms,
            access=Access(access),
        )

    state, issued = with_store(session, issue)
    labelled = f", label {label!r}" if label else ""
    ends = "" if expires_at_ms is None else f", expires {moment(expires_at_ms)}"
    remark = f"Key {issued.record.id} for account {account!r}, access {access}{labelled}{ends}"
    if state == "suspended":
        remark += ", which is refused while the account is suspended"
    _show_secret(session, issued, as_json, remark)


@keys.offers("show", "petstore keys show 3", "petstore keys show 3 --json")
@click.argument("key_id", type=ID)
def show_key(session: Session, key_id: int, as_json: bool) -> None:
    """Show one key: its account, access, state and ban.

    `petstore keys check` tells the same of a key whose text is at hand.
    """
    now_ms = session.clock.now_ms()

    async def find(store: Store) -> KeyDetails:
        return await details_of(store, await store.keys.get(key_id), now_ms)

    _write_key(read_store(session, find), now_ms, as_json)


@keys.offers(
    "rotate",
    "petstore keys rotate 3",
    "petstore keys rotate 3 --overlap 7d",
    "petstore keys rotate 3 --overlap 0       # the old key ends at once",
)
@click.argument("key_id", type=ID)
@click.option(
    "--overlap",
    type=Duration(zero=True),
    metavar="DURATION",
    help="How long the old key goes on working. Default: PETSTORE_KEY_ROTATION_OVERLAP (24h).",
)
def rotate_key(session: Session, key_id: int, overlap: int | None, as_json: bool) -> None:
    """Replace a key by a new one, and print that.

    The new key has the same account, label, access and expiry; the old one goes on working for the overlap.
    A key is rotated once: the second time names the key that replaced it.
    Standard output holds the new key alone. A key that has leaked should be revoked instead.
    """
    settings = session.settings
    overlap_ms = settings.key_rotation_overlap_ms if overlap is None else overlap

    async def rotate(store: Store) -> tuple[str, IssuedKey]:
        account = await store.accounts.get((await store.keys.get(key_id)).account_id)
        issued = await store.keys.rotate(key_id, settings.key_environment, overlap_ms, session.actor)
        return account.state, issued

    state, issued = with_store(session, rotate)
    lasts = f"for {format_duration(overlap_ms)} at most" if overlap_ms else "no longer"
    ends = f" (expires {moment(issued.record.expires_at_ms)})" if issued.record.expires_at_ms else ""
    remark = f"Key {issued.record.id}{ends} replaces key {key_id}, which works {lasts}"
    if state == "suspended":
        remark += "; the new one is refused while the account is suspended"
    _show_secret(session, issued, as_json, remark)


@keys.offers(
    "revoke",
    "petstore keys revoke 3",
    "petstore keys revoke 3 --yes",
    "petstore keys revoke 3 --with-webhooks    # a key that has leaked",
)
@click.argument("key_id", type=ID)
@click.option("--with-webhooks", is_flag=True, help="Disable the webhooks that the key has made, too.")
@yes_option
def revoke_key(session: Session, key_id: int, with_webhooks: bool, yes: bool, as_json: bool) -> None:
    """End a key for good; its next request is refused.

    On a terminal it shows the key and asks first. There is no way back: issue a new key instead. Revoking a
    revoked key changes nothing. It lists the webhooks that the key has made, which go on unless
    --with-webhooks disables them. Works on a full disk too, with the room that the server keeps back for it.
    """
    now_ms = session.clock.now_ms()

    async def find(store: Store) -> tuple[KeyDetails, list[Webhook]]:
        details = await details_of(store, await store.keys.get(key_id), now_ms)
        return details, await store.webhooks.of_key(key_id)

    async def revoke(store: Store) -> tuple[KeyDetails, list[Webhook]]:
        await store.keys.revoke(key_id, session.actor, with_webhooks=with_webhooks)
        return await find(store)

    if asks(yes):
        found, made = with_store_on_a_full_disk(session, find)
        labelled = f", label {found.key.label!r}" if found.key.label else ""
        of = f"{found.key.display} of account {found.account.name!r}{labelled}, access {found.key.access}"
        _list_made(made)
        confirm(f"Key {key_id} is {of}. Revoke it for good?")
    found, made = with_store_on_a_full_disk(session, revoke)
    records = [webhook_record(webhook, found.account.name) for webhook in made]
    _write_key(found, now_ms, as_json, webhooks=records)
    if not as_json:
        _list_made(made)
    if any(webhook.disabled is None for webhook in made):
        echo_err(f"To disable them, as for a leaked key: petstore keys revoke {key_id} --with-webhooks")


@keys.offers("unban", "petstore keys unban 3")
@click.argument("key_id", type=ID)
def unban_key(session: Session, key_id: int, as_json: bool) -> None:
    """Lift a key's ban, and forget what led to it.

    Acts on its next request. `petstore bans` shows which keys are banned. Unbanning a key without a ban
    clears its strikes.
    """
    now_ms = session.clock.now_ms()

    async def unban(store: Store) -> KeyDetails:
        return await details_of(store, await store.keys.pardon(key_id, session.actor), now_ms)

    _write_key(with_store(session, unban), now_ms, as_json)


keys.add_command(list_keys)
keys.add_command(check_key)


def _show_secret(session: Session, issued: IssuedKey, as_json: bool, remark: str) -> None:
    """Show a new key's text; no other function does. Raises ClickException when it can't be printed."""
    key = issued.record
    if not as_json:
        echo_err(f"{remark}. It is shown only now:")
    record = {"key": issued.secret, **key_record(key, session.clock.now_ms())}
    remedy = f"petstore keys revoke {key.id}, then issue another."
    print_once(f"Key {key.id} was issued but", record, issued.secret, as_json, remedy=remedy)


def _list_made(webhooks: list[Webhook]) -> None:
    for webhook in webhooks:
        echo_err(f"It has made webhook {webhook.id} ({webhook.state}): {webhook.url}")


def _write_key(details: KeyDetails, now_ms: int, as_json: bool, **more: object) -> None:
    record = {
        **key_record(details.key, now_ms),
        "accountId": details.account.id,
        "account": details.account.name,
        "bannedUntil": moment(details.banned_until_ms),
        **more,
    }
    fields = {
        **key_fields(details, now_ms),
        "last used": record["lastUsedAt"],
        "ban": details.ban,
    }
    write_record(record, fields, as_json)
