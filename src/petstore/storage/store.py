"""An open store, whichever database holds it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from petstore.core.events import Held
from petstore.core.limits.counters import CounterStore, MergingCounterStore
from petstore.core.versions import VersionSource
from petstore.storage.observer import StoreLoad
from petstore.transactions.store import Repositories


class Store(Repositories, ABC):
    """An open store: its repositories, the versions that caches depend on, and its upkeep.

    `counters` survive a restart; `merging_counters` are the same if several processes may write them, None
    for a file.
    """

    versions: VersionSource
    counters: CounterStore
    merging_counters: MergingCounterStore | None

    @abstractmethod
    def load(self) -> StoreLoad:
        """The load at this moment, for metrics."""

    @abstractmethod
    def on_commit(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the event loop after each commit of this process."""

    @abstractmethod
    async def probe(self) -> None:
        """Raise StoreUnavailable unless the store answers."""

    async def held_events(self) -> Held | None:
        """What is committed and not yet an event, where transactions overlap. Raises StoreUnavailable."""
        return None

    @abstractmethod
    async def try_write(self) -> None:
        """Commit a write that changes nothing.

        Raises StoreUnavailable when that fails, ConfigurationError when trying again can't help.
        """

    async def note_serving(self, *, with_valkey: bool) -> None:
        """Record whether this service counts in Valkey: if so, commands notify it of changes or wait. A
        file's one process counts in the file."""

    async def served_with_valkey(self) -> bool:
        """Whether the last service counted in Valkey. Raises StoreUnavailable."""
        return False

    @abstractmethod
    async def close(self) -> None:
        """Finish the accepted writes, then close the connections."""
