"""The page of a webhook with its attempts; operators disable and enable it, and send events again."""

from __future__ import annotations

from msgspec import UNSET
from starlette.responses import Response

from petstore.console.journal import history_of
from petstore.console.visit import INCOMPLETE_FORM, View, Visit, asks_again
from petstore.core.errors import Conflict, EventNotFound, EventsGone, InvalidBody, WebhookNotFound
from petstore.core.events import NOW
from petstore.core.people import Role
from petstore.core.values import INT64_MAX
from petstore.core.webhooks import DisabledReason, WebhookChange

_ROWS = 50
_REASONS = {
    DisabledReason.OWNER: "by its account",
    DisabledReason.OPERATOR: "by an operator",
    DisabledReason.FAILING: "after five days without a success",
    DisabledReason.GONE: "because it answered 410",
}


async def show(visit: Visit, *, is_gone: bool = False) -> Response:
    """The webhook with a page of attempts. For a removed one, its history.

    `is_gone`: the store can't continue where it stopped.
    """
    webhook_id, before_id = visit.id_of("webhook"), visit.query_id("before", INT64_MAX)
    title, history = f"Webhook {webhook_id}", await history_of(visit, "webhook", webhook_id)
    try:
        webhook = await visit.store.webhooks.get(webhook_id)
    except WebhookNotFound:
        if not history.is_removed:
            raise
        return visit.page("removed.html", title, 404, what=f"webhook {webhook_id}", history=history)
    page = await visit.store.deliveries.attempts(webhook_id, _ROWS, before_id)
    here = f"webhooks/{webhook_id}"
    return visit.page(
        "webhook.html",
        title,
        webhook=webhook,
        account=await visit.store.accounts.get(webhook.account_id),
        reason=_REASONS.get(webhook.disabled, "") if webhook.disabled else "",
        is_gone=is_gone,
        tries=page.attempts,
        first=here if before_id != INT64_MAX else "",
        next=f"{here}?before={page.next_start}" if page.next_start is not None else "",
        history=history,
    )


async def disable(visit: Visit) -> Response:
    webhook_id = visit.id_of("webhook")
    change = WebhookChange(enabled=False)
    await visit.store.webhooks.change(webhook_id, change, visit.actor, reason=DisabledReason.OPERATOR)
    return _shown_again(visit, f"Webhook {webhook_id} is disabled, and gets nothing until it is enabled.")


async def enable(visit: Visit) -> Response:
    """Let a webhook go on from where it stopped, or from now on."""
    webhook_id, is_anew = visit.id_of("webhook"), visit.form.get("from") == NOW
    change = WebhookChange(enabled=True, after=NOW if is_anew else UNSET)
    try:
        await visit.store.webhooks.change(webhook_id, change, visit.actor)
    except EventsGone as error:
        reason = error.message.partition(". ")[0]
        visit.refuse(Conflict(f"{reason}. It can go on from now; it does not get earlier events then."))
        return await show(visit, is_gone=True)
    return _shown_again(visit, f"Webhook {webhook_id} gets events again.")


@asks_again(show, EventNotFound, Conflict)
async def retry(visit: Visit) -> Response:
    webhook_id, event_id = visit.id_of("webhook"), visit.form.get("event", "")
    if not event_id:
        raise InvalidBody(INCOMPLETE_FORM)
    await visit.store.deliveries.redeliver(webhook_id, event_id, visit.actor)
    return _shown_again(visit, f"Event {event_id} is sent again. Load this page again to see the result.")


def _shown_again(visit: Visit, flash: str) -> Response:
    return visit.redirect(f"webhooks/{visit.id_of('webhook')}", flash=flash)


VIEWS = [
    View("GET", "/webhooks/{webhook_id}", show),
    View("POST", "/webhooks/{webhook_id}/disable", disable, Role.OPERATOR),
    View("POST", "/webhooks/{webhook_id}/enable", enable, Role.OPERATOR),
    View("POST", "/webhooks/{webhook_id}/retry", retry, Role.OPERATOR),
]
