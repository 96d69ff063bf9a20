# Made from _async/webhooks.py by `python -m tools.sync_client`.
"""Webhooks of the account. webhooks.py of the package is for those who receive them."""

from __future__ import annotations

import builtins
from collections.abc import Generator, Iterable

from petstore_client import webhook_calls
from petstore_client._sync.runner import Runner
from petstore_client.answers import Page
from petstore_client.calls import PAGE_SIZE_MAX
from petstore_client.models import Delivery, Webhook, WebhookWithSecret


class Webhooks:
    """Addresses of the account to which the service sends events. All methods need level write."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def list(self) -> builtins.list[Webhook]:
        """All of them, by ascending id."""
        return [*self._runner.run(webhook_calls.list_webhooks())]

    def create(
        self,
        url: str,
        *,
        types: Iterable[str] | None = None,
        description: str | None = None,
        idempotency_key: str | None = None,
    ) -> WebhookWithSecret:
        """Send events of these types to an address, by default all; raises Conflict at the plan's number.

        It is made once, whatever the network does. Keep the `secret`: webhooks.verify takes it.
        """
        return self._runner.run(webhook_calls.create_webhook(url, types, description, idempotency_key))

    def get(self, webhook_id: int) -> Webhook:
        """One webhook; raises NotFound."""
        return self._runner.run(webhook_calls.get_webhook(webhook_id))

    def update(
        self,
        webhook_id: int,
        *,
        url: str | None = None,
        types: Iterable[str] | None = None,
        description: str | None = None,
        enabled: bool | None = None,
        after: str | None = None,
        if_match: str | None = None,
    ) -> Webhook:
        """Change what is given; raises NotFound, PreconditionFailed.

        One that is enabled again goes on where it stopped. With `after`, a bookmark or `now`, it gets what
        comes after that; raises EventsGone where the service can't go on. `if_match` is as for an animal.
        """
        return self._runner.run(
            webhook_calls.update_webhook(
                webhook_id, if_match, types, url=url, description=description, enabled=enabled, after=after
            )
        )

    def delete(self, webhook_id: int, *, if_match: str | None = None) -> None:
        """Send it nothing more; raises NotFound, PreconditionFailed."""
        self._runner.run(webhook_calls.delete_webhook(webhook_id, if_match))

    def rotate_secret(self, webhook_id: int) -> WebhookWithSecret:
        """A new secret, beside which the former ones sign for 24 hours more; raises Conflict for a sixth.

        After a lost answer call it again: it is not repeated.
        """
        return self._runner.run(webhook_calls.rotate_secret(webhook_id))

    def test(self, webhook_id: int) -> Delivery | None:
        """Send it a `webhook.test` and wait for the answer; raises Conflict for one that is not enabled.

        None: after 20 seconds there is no answer; `deliveries` will have it. Ten a minute for an account.
        """
        return self._runner.run(webhook_calls.send_test(webhook_id))

    def rehearse(self, type: str) -> tuple[tuple[int, Delivery], ...]:  # noqa: A002  as in the body
        """Send the example of a type of event to each webhook that gets such: their ids, and what came back.

        In staging alone; elsewhere it raises NotFound.
        """
        return self._runner.run(webhook_calls.rehearse(type))

    def deliveries(self, webhook_id: int, *, page_size: int = PAGE_SIZE_MAX) -> Generator[Delivery]:
        """The newest 100 tries that succeeded, and all of 30 days that failed, newest first, page by page."""
        return self._runner.walk(webhook_calls.list_deliveries(webhook_id, page_size))

    def deliveries_page(
        self, webhook_id: int, *, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Delivery]:
        """One page of `deliveries`; the arguments are as for animals."""
        return self._runner.run(webhook_calls.list_deliveries(webhook_id, limit, cursor))

    def redeliver(self, webhook_id: int, event_id: str) -> str:
        """Send an event again soon; returns its id. Raises NotFound, Conflict for a webhook not enabled."""
        return self._runner.run(webhook_calls.redeliver(webhook_id, event_id))
