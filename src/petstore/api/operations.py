"""The table of operations under /v1: one row each."""

from __future__ import annotations

from typing import NamedTuple

from petstore.api.categories import CategoryOperations
from petstore.api.deliveries import DELIVERY_PARAMETERS, DeliveryOperations
from petstore.api.events import EVENT_PARAMETERS, EventOperations
from petstore.api.orders import ORDER_PARAMETERS, OrderOperations
from petstore.api.pets import PAGE_PARAMETERS, PetOperations
from petstore.api.pipeline.routing import Operation
from petstore.api.rehearsal import RehearsalOperations
from petstore.api.usage import UsageOperations
from petstore.api.webhooks import WebhookOperations
from petstore.core.keys import Access

READ, WRITE, MANAGE = Access


class Handlers(NamedTuple):
    """The handlers of all operations."""

    pets: PetOperations
    categories: CategoryOperations
    orders: OrderOperations
    events: EventOperations
    webhooks: WebhookOperations
    deliveries: DeliveryOperations
    rehearsal: RehearsalOperations
    usage: UsageOperations


def operations(handlers: Handlers) -> list[Operation]:
    """Every operation of the service, by its operationId in the contract."""
    pets, categories, orders, events, webhooks, deliveries, rehearsal, usage = handlers
    return [
        Operation("GET", "/v1/pets", "listPets", pets.list_pets, READ, PAGE_PARAMETERS, cacheable=True),
        Operation("POST", "/v1/pets", "createPet", pets.create_pet, WRITE),
        # getPet refuses parameters itself: the removal comes before them.
        Operation("GET", "/v1/pets/{petId}", "getPet", pets.get_pet, READ, (), deprecated=True,
                  always_headers=pets.get_pet_headers),
        Operation("PATCH", "/v1/pets/{petId}", "updatePet", pets.update_pet, MANAGE),
        Operation("DELETE", "/v1/pets/{petId}", "deletePet", pets.delete_pet, MANAGE),
        Operation("GET", "/v1/categories", "listCategories", categories.list_categories, READ,
                  cacheable=True),
        Operation("GET", "/v1/store/orders", "listOrders", orders.list_orders, READ, ORDER_PARAMETERS),
        Operation("POST", "/v1/store/orders", "placeOrder", orders.place_order, WRITE),
        Operation("DELETE", "/v1/store/orders/{orderId}", "cancelOrder", orders.cancel_order, WRITE),
        Operation("PATCH", "/v1/store/orders/{orderId}", "updateOrder", orders.update_order, MANAGE),
        Operation("GET", "/v1/events", "listEvents", events.list_events, READ, EVENT_PARAMETERS),
        Operation("GET", "/v1/webhooks", "listWebhooks", webhooks.list_webhooks, WRITE),
        Operation("POST", "/v1/webhooks", "createWebhook", webhooks.create_webhook, WRITE),
        Operation("GET", "/v1/webhooks/{webhookId}", "getWebhook", webhooks.get_webhook, WRITE),
        Operation("PATCH", "/v1/webhooks/{webhookId}", "updateWebhook", webhooks.update_webhook, WRITE),
        Operation("DELETE", "/v1/webhooks/{webhookId}", "deleteWebhook", webhooks.delete_webhook, WRITE),
        Operation("POST", "/v1/webhooks/{webhookId}/secret", "rotateWebhookSecret",
                  webhooks.rotate_webhook_secret, WRITE),
        Operation("POST", "/v1/webhooks/{webhookId}/test", "testWebhook", deliveries.test_webhook, WRITE),
        Operation("GET", "/v1/webhooks/{webhookId}/deliveries", "listDeliveries", deliveries.list_deliveries,
                  WRITE, DELIVERY_PARAMETERS),
        Operation("POST", "/v1/webhooks/{webhookId}/deliveries/{eventId}", "redeliver", deliveries.redeliver,
                  WRITE),
        Operation("POST", "/v1/rehearsal/events", "rehearseEvent", rehearsal.rehearse_event, WRITE),
        Operation("GET", "/v1/usage", "getUsage", usage.get_usage, READ),
    ]  # fmt: skip
