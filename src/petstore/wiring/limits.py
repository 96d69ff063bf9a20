"""Opens the store and the limiter of a service, with counters of one process, or shared in Valkey."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from petstore.config import Settings
from petstore.core.clock import Clock
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import Limiter, LimiterState
from petstore.core.limits.usage import UsageChanges
from petstore.limiter.memory import MemoryLimiter
from petstore.storage.backend import Backend
from petstore.storage.observer import Committed
from petstore.storage.store import Store

if TYPE_CHECKING:
    from petstore.limiter.valkey.observer import LimiterObserver


class StoreAndLimiter(NamedTuple):
    """The store and the limiter of a service.

    `save` stores the records that the limiter's `drain` returned. `check_limiter` lets an outage begin if the
    shared counters can't be reached or written. Await `load_counters` before the first request.
    """

    store: Store
    limiter: Limiter
    save: Callable[[LimiterState, UsageChanges], Awaitable[None]]
    check_limiter: Callable[[], Awaitable[None]]
    load_counters: Callable[[], Awaitable[None]]


def ban_policy(settings: Settings) -> BanPolicy:
    """The ban rule of the settings."""
    return BanPolicy(
        settings.ban_minimum_rejections,
        settings.ban_window_ms,
        settings.ban_grace_ms,
        settings.ban_durations_ms,
        settings.ban_forgiven_after_ms,
    )


def processes(settings: Settings) -> int:
    """How many processes share the limits. A process that counts alone divides each limit by it."""
    return settings.replicas * settings.workers if settings.valkey_url else 1


async def _no_counters() -> None:
    """Nothing is shared."""


async def open_store_and_limiter(
    settings: Settings,
    backend: Backend,
    clock: Clock,
    committed: Committed,
    watch: LimiterObserver,
    opened: AsyncExitStack,
    await_predecessor: Callable[[], None],
) -> StoreAndLimiter:
    """`opened` closes what this opens, also if it fails. `await_predecessor` blocks until the process that
    had the counters has saved them; `load_counters` calls it.

    Raises ConfigurationError and StoreUnavailable.
    """
    policy = ban_policy(settings)
    if not settings.valkey_url:
        store = backend.open(clock, committed)
        opened.push_async_callback(store.close)
        await store.note_serving(with_valkey=False)
        state = LimiterState()

        async def load_counters() -> None:
            await_predecessor()
            state.update(await store.counters.load(now_ms := clock.now_ms(), policy.matter_since_ms(now_ms)))

        alone = MemoryLimiter(clock, policy, store.versions, state)
        return StoreAndLimiter(store, alone, store.counters.save, _no_counters, load_counters)
    from petstore.limiter.valkey import client, fallback, limiter, publisher  # their driver may be missing

    valkey = await client.open_client(settings.valkey_url, settings.valkey_timeout_ms / 1_000, watch)
    opened.push_async_callback(valkey.close)  # after the store, which announces its last writes
    store = backend.open(clock, committed, publisher.ValkeyPublisher(valkey))
    opened.push_async_callback(store.close)
    await store.note_serving(with_valkey=True)
    counters = store.merging_counters
    assert counters is not None, "config refuses a file with a Valkey"
    refuse = settings.limiter_outage == "refuse"
    in_outages = None if refuse else fallback.FallbackLimiter(clock, policy, processes(settings))
    shared = limiter.ValkeyLimiter(valkey, counters, clock, policy, in_outages)
    return StoreAndLimiter(store, shared, counters.merge, valkey.check, _no_counters)
