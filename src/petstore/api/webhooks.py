"""The operations on webhooks."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from petstore.api.pipeline.body import check_body_headers, read_body
from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Response, make_created, make_representation, make_response
from petstore.core.keys import Caller
from petstore.core.members import Fault
from petstore.core.preconditions import encode, tag_of
from petstore.core.secrets_cipher import SecretsCipher
from petstore.core.webhooks import NEW_WEBHOOK, WEBHOOK_CHANGE, Webhook, members_of, mint, renewed
from petstore.transactions.webhooks import Webhooks

_ID_INDEX = 3  # the segment of a path that has the webhook's id


class WebhookOperations(msgspec.Struct, kw_only=True):
    """One handler for each operationId. Another account's webhook is not found.

    `checks`: further rules of its members.
    """

    webhooks: Webhooks
    checks: Mapping[str, Fault]
    cipher: SecretsCipher
    reference_base: str
    body_timeout_seconds: float

    async def list_webhooks(self, request: Request, caller: Caller) -> Response:
        """GET /webhooks: all of the account, by id."""
        found = await self.webhooks.of_account(caller.account_id)
        return make_representation(encode([members_of(each) for each in found]))

    async def create_webhook(self, request: Request, caller: Caller) -> Response:
        """POST /webhooks: 201 with the secret, once the webhook is durable."""
        check_body_headers(request)
        idempotency_key = request.idempotency_key(caller.account_id)
        new = NEW_WEBHOOK.read(await read_body(request, self.body_timeout_seconds), self.checks)
        webhook, secrets, replayed = await self.webhooks.create(
            caller.account_id,
            caller.key_id,
            new,
            self.cipher.encrypt([mint()]),
            caller.actor,
            idempotency_key,
        )
        tag, location = tag_of(encode(members_of(webhook))), f"{self.reference_base}/webhooks/{webhook.id}"
        return make_created(self._with_secret(webhook, secrets), tag, location, replayed=replayed)

    async def get_webhook(self, request: Request, caller: Caller) -> Response:
        """GET /webhooks/{webhookId}."""
        webhook = await self.webhooks.get(webhook_id_of(request), caller.account_id)
        return make_representation(encode(members_of(webhook)))

    async def update_webhook(self, request: Request, caller: Caller) -> Response:
        """PATCH /webhooks/{webhookId}: also ends, begins and repeats its deliveries."""
        check_body_headers(request, patch=True)
        match = request.match()
        change = WEBHOOK_CHANGE.read(await read_body(request, self.body_timeout_seconds), self.checks)
        webhook = await self.webhooks.change(
            webhook_id_of(request),
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
        await self.webhooks.remove(webhook_id_of(request), caller.actor, caller.account_id, match)
        return make_response(204, None)

    async def rotate_webhook_secret(self, request: Request, caller: Caller) -> Response:
        """POST /webhooks/{webhookId}/secret: a new one; the former ones sign for another day."""

        def renew(secrets: str, now_ms: int) -> str:
            return self.cipher.encrypt(renewed(self.cipher.decrypt(secrets), now_ms))

        webhook, secrets = await self.webhooks.rotate(
            webhook_id_of(request), caller.actor, renew, caller.account_id
        )
        return make_response(200, self._with_secret(webhook, secrets))

    def _with_secret(self, webhook: Webhook, secrets: str) -> bytes:
        return encode(members_of(webhook) | {"secret": self.cipher.decrypt(secrets)[0].text})


def webhook_id_of(request: Request) -> int:
    """Raises NotFound unless the identifier in the path is canonical."""
    return request.required_id("webhook", _ID_INDEX)
