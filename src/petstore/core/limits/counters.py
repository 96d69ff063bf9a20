"""Counters of limits: protocols to take requests from them and to keep them over a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from petstore.core.keys import Caller
from petstore.core.limits.bans import BanState
from petstore.core.limits.decision import Decision
from petstore.core.limits.usage import UsageChanges
from petstore.core.limits.windows import AccountWindows
from petstore.core.versions import Version

# Gets the Decision about a request of a Caller; None: call `Limiter.take`.
OnDecision = Callable[[Caller, Decision | None], None]


class LimiterState(msgspec.Struct):
    """Windows by account id and bans by key id, as absolute values."""

    windows: dict[int, AccountWindows] = msgspec.field(default_factory=dict)
    bans: dict[int, BanState] = msgspec.field(default_factory=dict)

    def update(self, later: LimiterState) -> None:
        """Replace what changed later."""
        self.windows.update(later.windows)
        self.bans.update(later.bans)


class Limiter(Protocol):
    """Takes requests from the counters of accounts."""

    async def take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        """Take one request from all windows, or from none; the versions are those after the call began.

        `cached_version` is the keyring's version under which this Caller was cached. When the keyring has
        another one now, or an unknown one, nothing is taken and the result is None: read the Caller from the
        store and call again without it. Raises Unavailable when it can't decide.
        """

    def try_take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        """`take` without waiting. None also where it would have to wait, for some limiters always."""

    async def peek(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        """`take` of nothing: what is left at this moment. Only a ban refuses."""

    def take_later(self, caller: Caller, cached_version: Version | None, callback: OnDecision) -> bool:
        """`take` without a task: it calls `callback` once, later. False: never, so call `take`.

        When `callback` gets None, nothing was taken, or nobody knows (a lost connection).
        """

    def keyring_version(self) -> Version | None:
        """The last known version. Read it before a Caller; cache the Caller if the decision has it too."""

    def drain(self) -> LimiterState:
        """The records that changed since the last call."""

    def saved(self) -> None:
        """Everything that was drained is in the store."""


class CounterStore(Protocol):
    """Keeps counters over a restart: written in batches, read at the start. May raise StoreUnavailable."""

    async def load(self, now_ms: int, bans_since_ms: int = -1) -> LimiterState:
        """All windows that still matter at `now_ms`, and the bans of `BanPolicy.matter_since_ms`."""

    async def save(self, state: LimiterState, usage: UsageChanges) -> None:
        """Write the absolute values of `state` and add `usage`, in one transaction."""


class MergingCounterStore(CounterStore, Protocol):
    """A CounterStore for several processes; each writes the shared counters that it has read."""

    async def merge(self, state: LimiterState, usage: UsageChanges) -> None:
        """Keep the later records and add `usage`, in one transaction.

        An account keeps its later window, and the greater count of the same window. A key keeps the ban with
        the later pardon, then the later start, then the later strikes.
        """

    async def load_for(
        self, now_ms: int, account_id: int, key_id: int
    ) -> tuple[AccountWindows | None, BanState | None]:
        """The records of one account and one of its keys that still count at `now_ms`."""
