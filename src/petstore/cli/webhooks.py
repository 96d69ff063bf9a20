"""`petstore webhooks`: the addresses that get events, the outcomes, and an end or a repetition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import UNSET

from petstore.cli.context import Session, read_store, with_store
from petstore.cli.events import read_after
from petstore.cli.groups import LazyGroup
from petstore.cli.output import (
    Columns,
    Record,
    asks,
    confirm,
    echo_err,
    moment,
    write_json,
    write_record,
    write_records,
    write_table,
    yes_option,
)
from petstore.cli.records import webhook_fields, webhook_record
from petstore.cli.types import ACCOUNT, ID, limit_option
from petstore.core.errors import EventsGone, OperatorError
from petstore.core.events import Bookmark
from petstore.core.values import INT64_MAX
from petstore.core.webhooks import DeliveryAttempt, DisabledReason, Webhook, WebhookChange, attempt_members

if TYPE_CHECKING:
    from petstore.wiring.administration import Store

_WEBHOOK_ID = click.argument("webhook_id", type=ID, metavar="ID")
_ATTEMPTS: Columns = {
    "AT": "at",
    "EVENT": "eventId",
    "TYPE": "type",
    "STATUS": "status",
    "MS": "durationMs",
    "FAULT": "fault",
    "NEXT TRY": "nextAt",
}


@click.group(cls=LazyGroup)
def webhooks() -> None:
    """The webhooks of all accounts: list, disable, enable, retry.

    Customers' programs make them by the interface. Their secrets are never shown here.
    """


@webhooks.offers(
    "list",
    "petstore webhooks list --failing          # whose programs get nothing",
    "petstore webhooks list --account shop",
    "petstore webhooks list --after 100",
)
@click.option("--account", type=ACCOUNT, help="Only of this account.")
@click.option("--failing", is_flag=True, help="Only enabled ones that failed since their last success.")
@limit_option
@click.option("--after", type=ID, metavar="ID", help="Only webhooks with a greater id.")
def list_webhooks(
    session: Session, account: str | None, failing: bool, limit: int, after: int | None, as_json: bool
) -> None:
    """List webhooks in the order of their ids.

    When there are more, standard error says how to go on.
    """

    async def read(store: Store) -> tuple[list[Webhook], dict[int, str]]:
        account_id = None if account is None else (await store.accounts.find(account)).id
        page = await store.webhooks.page(limit + 1, account_id, after or 0, failing=failing)
        return page, await store.accounts.names({webhook.account_id for webhook in page})

    page, names = read_store(session, read)
    write_records(
        [webhook_record(webhook, names[webhook.account_id]) for webhook in page[:limit]],
        {"ID": "id", "ACCOUNT": "account", "URL": "url", "STATE": "state", "FAILING SINCE": "failingSince"},
        as_json,
        empty="No webhooks match.",
    )
    if len(page) > limit:
        echo_err(f"There are more: add --after {page[limit - 1].id}")


@webhooks.offers("show", "petstore webhooks show 3", "petstore webhooks show 3 --limit 100")
@_WEBHOOK_ID
@limit_option
def show_webhook(session: Session, webhook_id: int, limit: int, as_json: bool) -> None:
    """Show a webhook and its last tries, the newest first.

    Failed tries are kept for 30 days, of the others the last 100. JSON has the answers' beginnings too.
    """

    async def read(store: Store) -> tuple[Webhook, str, list[DeliveryAttempt]]:
        webhook = await store.webhooks.get(webhook_id)
        page = await store.deliveries.attempts(webhook_id, limit, INT64_MAX)
        return webhook, await _account_of(store, webhook), page.attempts

    webhook, account, attempts = read_store(session, read)
    records = [_attempt_record(each) for each in attempts]
    if as_json:
        write_json({**webhook_record(webhook, account), "tries": records})
        return
    _write(webhook, account, as_json=False)
    if records:
        click.echo()
        write_table(records, _ATTEMPTS)
    else:
        echo_err("\nNo tries are kept.")


@webhooks.offers("disable", "petstore webhooks disable 3", "petstore webhooks disable 3 --yes")
@_WEBHOOK_ID
@yes_option
def disable_webhook(session: Session, webhook_id: int, yes: bool, as_json: bool) -> None:
    """Send nothing to a webhook until it is enabled.

    On a terminal it shows the webhook and asks first. The account may enable it again with any key of level
    `write`; to end that, revoke the key.
    """

    async def find(store: Store) -> tuple[Webhook, str]:
        webhook = await store.webhooks.get(webhook_id)
        return webhook, await _account_of(store, webhook)

    if asks(yes):
        webhook, account = with_store(session, find)
        confirm(f"Webhook {webhook_id} of account {account!r} is {webhook.url}. Disable it?")
    _change(session, webhook_id, WebhookChange(enabled=False), as_json)


@webhooks.offers(
    "enable",
    "petstore webhooks enable 3                # go on where it stopped",
    "petstore webhooks enable 3 --after now",
    "petstore webhooks enable 3 --after 0f3a9c2b5d7e-0-117",
)
@_WEBHOOK_ID
@click.option(
    "--after",
    callback=read_after,
    metavar="BOOKMARK",
    help="Go on after this bookmark, even if events are sent twice. 'now' sends new events alone.",
)
def enable_webhook(session: Session, webhook_id: int, after: Bookmark | str | None, as_json: bool) -> None:
    """Send events to a webhook again, from where it stopped.

    --after also moves a webhook that is enabled. `petstore events` prints bookmarks.
    """
    change = WebhookChange(enabled=True, after=UNSET if after is None else str(after))
    try:
        _change(session, webhook_id, change, as_json)
    except EventsGone as error:
        reason = error.message.partition(". ")[0]
        raise OperatorError(f"{reason}. Write --after now: earlier events are not sent then.") from None


@webhooks.offers("retry", "petstore webhooks retry 3 evt_0f3a9c2b5d7e_117")
@_WEBHOOK_ID
@click.argument("event")
def retry_event(session: Session, webhook_id: int, event: str, as_json: bool) -> None:
    """Send an event to a webhook once more.

    EVENT is the id of any event that the account sees; `petstore webhooks show` has those of the last tries.
    A running server sends it at once.
    """
    with_store(session, lambda store: store.deliveries.redeliver(webhook_id, event, session.actor))
    write_record({"id": webhook_id, "eventId": event}, {"webhook": webhook_id, "event": event}, as_json)
    echo_err(f"To see the outcome: petstore webhooks show {webhook_id}")


def _change(session: Session, webhook_id: int, change: WebhookChange, as_json: bool) -> None:
    async def work(store: Store) -> tuple[Webhook, str]:
        webhook = await store.webhooks.change(
            webhook_id, change, session.actor, reason=DisabledReason.OPERATOR
        )
        return webhook, await _account_of(store, webhook)

    _write(*with_store(session, work), as_json)


async def _account_of(store: Store, webhook: Webhook) -> str:
    return (await store.accounts.get(webhook.account_id)).name


def _write(webhook: Webhook, account: str, as_json: bool) -> None:
    write_record(webhook_record(webhook, account), webhook_fields(webhook, account), as_json)


def _attempt_record(found: DeliveryAttempt) -> Record:
    """An attempt as the interface shows it."""
    return {**attempt_members(found), "at": moment(found.at_ms), "nextAt": moment(found.next_at_ms)}
