"""The operations on webhooks as calls. Does no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from petstore_client import models
from petstore_client.answers import Page, check_removal, page_of, reads, tagged
from petstore_client.arguments import (
    etag,
    event_id,
    idempotency_key,
    identifier,
    members,
    query,
    some_members,
)
from petstore_client.calls import Call
from petstore_client.documents import member, read_array
from petstore_client.models import Delivery, Webhook, WebhookWithSecret

_PENDING = 202
_TEST_SECONDS = 20  # for which the service holds the answer back


def list_webhooks() -> Call[tuple[Webhook, ...]]:
    """GET /webhooks."""
    return Call("listWebhooks", reads(read_array(models.read_webhook)))


def create_webhook(
    url: str, types: Iterable[str] | None, description: str | None, key: str | None
) -> Call[WebhookWithSecret]:
    """POST /webhooks."""
    document = members(url=url, types=_types(types), description=description)
    read = tagged(reads(models.read_webhook_with_secret))
    return Call("createWebhook", read, document=document, idempotency_key=idempotency_key(key))


def get_webhook(webhook_id: int) -> Call[Webhook]:
    """GET /webhooks/{webhookId}."""
    return Call("getWebhook", tagged(reads(models.read_webhook)), id=identifier(webhook_id))


def update_webhook(
    webhook_id: int, if_match: str | None, types: Iterable[str] | None, **changes: object
) -> Call[Webhook]:
    """PATCH /webhooks/{webhookId}."""
    document = some_members(types=_types(types), **changes)
    read = tagged(reads(models.read_webhook))
    return Call("updateWebhook", read, id=identifier(webhook_id), document=document, if_match=etag(if_match))


def delete_webhook(webhook_id: int, if_match: str | None) -> Call[None]:
    """DELETE /webhooks/{webhookId}."""
    return Call("deleteWebhook", check_removal, id=identifier(webhook_id), if_match=etag(if_match))


def rotate_secret(webhook_id: int) -> Call[WebhookWithSecret]:
    """POST /webhooks/{webhookId}/secret."""
    read = reads(models.read_webhook_with_secret)
    return Call("rotateWebhookSecret", read, id=identifier(webhook_id))


def send_test(webhook_id: int) -> Call[Delivery | None]:
    """POST /webhooks/{webhookId}/test, which the service may hold back."""
    read = reads(models.read_delivery)
    return Call(
        "testWebhook",
        lambda answer: None if answer.status == _PENDING else read(answer),
        id=identifier(webhook_id),
        wait_seconds=_TEST_SECONDS,
    )


def list_deliveries(webhook_id: int, limit: int, cursor: str | None = None) -> Call[Page[Delivery]]:
    """GET /webhooks/{webhookId}/deliveries."""
    read, limits = page_of(models.read_delivery), query([("limit", limit)])
    return Call("listDeliveries", read, id=identifier(webhook_id), query=limits, cursor=cursor)


def redeliver(webhook_id: int, event: str) -> Call[str]:
    """POST /webhooks/{webhookId}/deliveries/{eventId}."""
    read = reads(lambda document: member(document, "eventId", str))
    return Call("redeliver", read, id=identifier(webhook_id), event_id=event_id(event))


def rehearse(kind: str) -> Call[tuple[tuple[int, Delivery], ...]]:
    """POST /rehearsal/events, which the service may hold back."""
    return Call(
        "rehearseEvent",
        reads(read_array(_read_rehearsed)),
        document=members(type=kind),
        wait_seconds=_TEST_SECONDS,
    )


def _read_rehearsed(document: Any) -> tuple[int, Delivery]:
    delivery = models.read_delivery(member(document, "delivery", dict))
    return member(document, "webhookId", int), delivery


def _types(given: Iterable[str] | None) -> list[str] | None:
    return [given] if isinstance(given, str) else None if given is None else list(given)
