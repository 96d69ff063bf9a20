"""The operations of /v1 with what each needs, and the contract with the addresses of the settings."""

from __future__ import annotations

from petstore.api.categories import CategoryOperations
from petstore.api.deliveries import DeliveryOperations
from petstore.api.deprecation import Deprecation
from petstore.api.events import EventOperations
from petstore.api.openapi.document import OpenApiDocument
from petstore.api.operations import Handlers
from petstore.api.orders import OrderOperations
from petstore.api.pets import PetOperations
from petstore.api.pipeline.app import PREFIX
from petstore.api.pipeline.gate import Gate
from petstore.api.rehearsal import RehearsalOperations, Send
from petstore.api.usage import UsageOperations
from petstore.api.waits import Waits
from petstore.api.webhooks import WebhookOperations
from petstore.config import Settings
from petstore.core.clock import Clock
from petstore.core.secrets_cipher import SecretsCipher
from petstore.core.stages import HEADER, Stage
from petstore.core.targets import UrlGuard
from petstore.storage.store import Store


def openapi_document(settings: Settings) -> OpenApiDocument:
    """The contract with the addresses of the settings.

    Without a base address it is the listener's, if that is for this machine alone; else a path, since a
    host such as 0.0.0.0 is not an address for a client.
    """
    stage = settings.stage or Stage.PRODUCTION
    base, description = settings.base_url, stage.title()
    if not base and settings.is_loopback:
        base = f"{settings.listens_at}{PREFIX}"
        description = f"{description}, on this machine" if settings.stage else "This machine"
    servers = [{"url": base or PREFIX, "description": description}]
    if settings.other_base_url:
        servers.append({"url": settings.other_base_url, "description": stage.other.title()})
    return OpenApiDocument(servers, base and f"{base.removesuffix(PREFIX)}/docs")


def stage_headers(settings: Settings) -> list[tuple[bytes, bytes]]:
    """What every answer of staging has besides, so that nobody takes it for production's."""
    return [(HEADER, Stage.STAGING.encode("ascii"))] if settings.is_staging else []


def _reference_base(settings: Settings) -> str:
    """The beginning of references below /v1."""
    return settings.base_url or PREFIX


def documentation_base(settings: Settings) -> str:
    """The beginning of references to the documentation."""
    return f"{_reference_base(settings).removesuffix(PREFIX)}/docs"


def guard_of(settings: Settings) -> UrlGuard:
    """The guard of the addresses that webhooks may reach."""
    return UrlGuard(settings.webhook_networks, allows_loopback=settings.is_own)


def pet_handlers(
    settings: Settings, clock: Clock, store: Store, *, is_removed: bool = False
) -> PetOperations:
    """The operations on animals; `is_removed` makes them as they are after the removal of getPet, whatever
    the time is."""
    base, page = _reference_base(settings), f"{documentation_base(settings)}/deprecation"
    return PetOperations(
        pets=store.pets,
        clock=clock,
        deprecation=Deprecation(settings.removal_at_ms, base, page, is_over=is_removed),
        reference_base=base,
        body_timeout_seconds=settings.body_timeout_ms / 1_000,
    )


def build_handlers(
    settings: Settings, clock: Clock, store: Store, gate: Gate, waits: Waits, send: Send | None
) -> Handlers:
    """The handlers of the service; `send` is staging's. Raises ConfigurationError."""
    base, seconds = _reference_base(settings), settings.body_timeout_ms / 1_000
    return Handlers(
        pets=pet_handlers(settings, clock, store),
        categories=CategoryOperations(categories=store.categories),
        orders=OrderOperations(
            orders=store.orders, accounts=store.accounts, reference_base=base, body_timeout_seconds=seconds
        ),
        events=EventOperations(
            events=store.events, waits=waits, admit_again=gate.admit_again, clock=clock, reference_base=base
        ),
        webhooks=WebhookOperations(
            webhooks=store.webhooks,
            checks={"url": guard_of(settings).fault_of_url},
            cipher=SecretsCipher(settings.secrets_key),
            reference_base=base,
            body_timeout_seconds=seconds,
        ),
        deliveries=DeliveryOperations(
            deliveries=store.deliveries,
            waits=waits,
            admit_again=gate.admit_again,
            clock=clock,
            reference_base=base,
        ),
        rehearsal=RehearsalOperations(
            deliveries=store.deliveries,
            send=send,
            admit_again=gate.admit_again,
            clock=clock,
            body_timeout_seconds=seconds,
        ),
        usage=UsageOperations(usage=store.usage),
    )
