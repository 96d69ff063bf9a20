"""The operations on webhooks, and on what became of their deliveries."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from typing import Any

from msgspec import UNSET

from petstore.api.pipeline.body import check_body_headers, read_body
from petstore.api.pipeline.paging import PageLinks, bind, read_cursor, read_given, read_limit
from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Header, Response, encode, make_representation, make_response
from petstore.api.waits import Waits
from petstore.core.clock import Clock
from petstore.core.errors import InvalidBody, NotFound
from petstore.core.idempotency import Idempotency
from petstore.core.keys import Caller
from petstore.core.preconditions import tag_of
from petstore.core.sealing import Seal
from petstore.core.targets import Guard
from petstore.core.values import INT64_MAX
from petstore.core.webhooks import (
    NEW_WEBHOOK,
    WEBHOOK_CHANGE,
    Webhook,
    members_of,
    mint,
    renewed,
    try_members,
)
from petstore.transactions.store import Parts

DELIVERY_PARAMETERS = ("limit", "cursor")
# A test is answered without its outcome after so long.
TEST_SECONDS = 20.0
_LOOK_SECONDS = 0.2
_AT = 3  # the place of a webhook's id in a path


class WebhookOperations:
    """Handlers by the names of the operations. Another account's webhook is not found."""

    def __init__(
        self,
        *,
        store: Parts,
        guard: Guard,
        seal: Seal,
        waits: Waits,
        clock: Clock,
        reference_base: str,
        body_timeout_seconds: float,
    ) -> None:
        self._webhooks, self._deliveries = store.webhooks, store.deliveries
        self._guard = guard
        self._seal = seal
        self._waits = waits
        self._clock = clock
        self._base = f"{reference_base}/webhooks"
        self._body_timeout_seconds = body_timeout_seconds

    async def list_webhooks(self, request: Request, caller: Caller) -> Response:
        """GET /webhooks: all of the account, by id."""
        body = encode([members_of(each) for each in await self._webhooks.of_account(caller.account_id)])
        return make_representation(body, tag_of(body))

    async def create_webhook(self, request: Request, caller: Caller) -> Response:
        """POST /webhooks: 201 with the secret, once the webhook is durable."""
        check_body_headers(request)
        key = request.idempotency_key()
        new = NEW_WEBHOOK.read(await read_body(request, self._body_timeout_seconds))
        self._check(new.url)
        idempotency = None if key is None else Idempotency(caller.account_id, key)
        webhook, secrets, replayed = await self._webhooks.create(
            caller.account_id, caller.key_id, new, self._seal.close([mint()]), caller.actor, idempotency
        )
        headers = [(b"location", f"{self._base}/{webhook.id}".encode("ascii"))]
        if replayed:
            headers.append((b"idempotency-replayed", b"true"))
        return self._with_secret(201, webhook, secrets, *headers)

    async def get_webhook(self, request: Request, caller: Caller) -> Response:
        """GET /webhooks/{webhookId}."""
        webhook = await self._webhooks.get(_id_of(request), caller.account_id)
        body = encode(members_of(webhook))
        return make_representation(body, tag_of(body))

    async def update_webhook(self, request: Request, caller: Caller) -> Response:
        """PATCH /webhooks/{webhookId}: also ends, begins and repeats its deliveries."""
        check_body_headers(request, patch=True)
        match = request.match()
        change = WEBHOOK_CHANGE.read(await read_body(request, self._body_timeout_seconds))
        if change.url is not UNSET:
            self._check(change.url)
        webhook = await self._webhooks.change(
            _id_of(request),
            change,
            caller.actor,
            account_id=caller.account_id,
            key_id=caller.key_id,
            match=match,
        )
        body = encode(members_of(webhook))
        return make_response(200, body, (b"etag", tag_of(body)))

    async def delete_webhook(self, request: Request, caller: Caller) -> Response:
        """DELETE /webhooks/{webhookId}: 204."""
        match = request.match()
        await self._webhooks.remove(_id_of(request), caller.actor, caller.account_id, match)
        return make_response(204, None)

    async def rotate_webhook_secret(self, request: Request, caller: Caller) -> Response:
        """POST /webhooks/{webhookId}/secret: a new one; the former ones sign for another day."""

        def renew(secrets: str, now_ms: int) -> str:
            return self._seal.close(renewed(self._seal.open(secrets), now_ms))

        webhook, secrets = await self._webhooks.rotate(
            _id_of(request), caller.actor, renew, caller.account_id
        )
        return self._with_secret(200, webhook, secrets)

    async def test_webhook(self, request: Request, caller: Caller) -> Response:
        """POST /webhooks/{webhookId}/test: what came back, or 202 after TEST_SECONDS and at a stop."""
        webhook_id = _id_of(request)
        event_id = await self._deliveries.test(webhook_id, caller.actor, caller.account_id)
        began, found = self._clock.monotonic(), None
        while found is None and not self._waits.has_ended and request.waited < TEST_SECONDS:
            await asyncio.sleep(_LOOK_SECONDS)
            found = await self._deliveries.first_try(webhook_id, event_id)
            request.waited = self._clock.monotonic() - began
        if found is None:
            return _queued(event_id)
        return make_response(200, encode(try_members(found)))

    async def list_deliveries(self, request: Request, caller: Caller) -> Response:
        """GET /webhooks/{webhookId}/deliveries: a page of tries, newest first."""
        webhook_id = _id_of(request)
        given, _ = read_given(request.parameters(), DELIVERY_PARAMETERS, "")
        limit = read_limit(given)
        links = _links_of(f"{self._base}/{webhook_id}", webhook_id, limit)
        cursor = given.get("cursor")
        before_id = 0 if cursor is None else read_cursor(cursor, links.bound)
        page = await self._deliveries.tries(webhook_id, limit, before_id or INT64_MAX, caller.account_id)
        body, link = encode([try_members(each) for each in page.tries]), links.after(page.before_id)
        return make_representation(body, tag_of(body + link), (b"link", link))

    async def redeliver(self, request: Request, caller: Caller) -> Response:
        """POST /webhooks/{webhookId}/deliveries/{eventId}: 202, the event is sent once more."""
        event_id = request.path.rpartition(b"/")[2].decode("latin-1")
        await self._deliveries.redeliver(_id_of(request), event_id, caller.actor, caller.account_id)
        return _queued(event_id)

    def _check(self, url: str) -> None:
        """Raise InvalidBody for a URL that may not be called."""
        if fault := self._guard.fault_of_url(url):
            raise InvalidBody(f"url: {fault}.")

    def _with_secret(self, status: int, webhook: Webhook, secrets: str, *headers: Header) -> Response:
        members: dict[str, Any] = members_of(webhook)
        tag = tag_of(encode(members))
        members["secret"] = self._seal.open(secrets)[0].text
        return make_response(status, encode(members), (b"etag", tag), *headers)


def _id_of(request: Request) -> int:
    """Raises NotFound unless the identifier in the path is canonical."""
    webhook_id = request.path_id(_AT)
    if webhook_id is None:
        raise NotFound("There is no such webhook.")
    return webhook_id


def _queued(event_id: str) -> Response:
    return make_response(202, encode({"eventId": event_id}))


@lru_cache(maxsize=256)
def _links_of(base: str, webhook_id: int, limit: int) -> PageLinks:
    return PageLinks(f"{base}/deliveries", limit, None, None, "", bind(f"deliveries {webhook_id}"))
