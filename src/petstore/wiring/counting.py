"""Opens the store and the limiter that goes with it: counters of this process alone, or shared by many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from petstore.config import Settings
from petstore.core.clock import Clock
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import Limiter, LimiterState
from petstore.core.limits.usage import UsageChanges
from petstore.limiter.memory import MemoryLimiter
from petstore.limiter.valkey.observer import LimiterObserver
from petstore.storage.backend import Backend, Store
from petstore.storage.observer import StoreObserver

Save = Callable[[LimiterState, UsageChanges], Awaitable[None]]


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
    """How many share the limits: what each counts by itself is worth so much less."""
    return settings.replicas * settings.workers if settings.valkey_url else 1


class Counting:
    """The store, and the limiter that goes with it.

    `save` writes what the limiter's `drain` has given.
    """

    def __init__(
        self, store: Store, limiter: Limiter, save: Save, let_go: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self.store = store
        self.limiter = limiter
        self.save = save
        self.let_go = let_go

    async def close(self) -> None:
        """The store first: what it still writes is told to the others."""
        await self.store.close()
        if self.let_go is not None:
            await self.let_go()


async def open_counting(
    settings: Settings, backend: Backend, clock: Clock, observer: StoreObserver, watch: LimiterObserver
) -> Counting:
    """Both, as the settings say. Raises ConfigurationError and StoreUnavailable."""
    policy = ban_policy(settings)
    if not settings.valkey_url:
        store = backend.open(clock, observer)
        await store.note_counters(shared=False)
        state = await store.counters.load(clock.now_ms())
        return Counting(store, MemoryLimiter(clock, policy, store.versions, state), store.counters.save)
    from petstore.limiter.valkey.shared import open_shared  # needs a driver that not everybody has

    shared = await open_shared(settings.valkey_url, watch)
    try:
        store = backend.open(clock, observer, shared.publisher)
        await store.note_counters(shared=True)
    except BaseException:
        await shared.close()
        raise
    counters = store.merging_counters
    assert counters is not None, "config refuses a file with a Valkey"
    refuse = settings.limiter_outage == "refuse"
    limiter = shared.limiter(counters, clock, policy, processes(settings), refuse=refuse)
    return Counting(store, limiter, counters.merge, shared.close)
