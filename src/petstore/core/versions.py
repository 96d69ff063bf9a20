"""Versions that tell whether something read earlier is still true: one of the animals, one of the keys.

Who moves them: SQLite by triggers; where counters are shared, whoever writes, through a Publisher.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Protocol

import msgspec

# Opaque: two of them are compared for equality, nothing else. None stands for "unknown": nothing that was
# kept may be used, and nothing may be kept.
Version = Hashable


class Versions(msgspec.Struct, frozen=True, gc=False):
    """`catalogue` changes with every change of an animal, `keyring` with every one of an account or key."""

    catalogue: Version | None
    keyring: Version | None


NO_VERSIONS = Versions(None, None)

# Where counters are shared, nothing is kept for longer, whatever happens to the versions.
LEASE_SECONDS = 5.0
# For so long a writer that never came back keeps a version unknown: whatever may still commit ends before.
WRITER_SECONDS = 10.0


class VersionSource(Protocol):
    """Where versions are known without shared counters: the store."""

    async def current(self) -> Versions:
        """As of a moment after the call began. Raises StoreUnavailable."""
        ...

    def try_current(self) -> Versions | None:
        """The same as `current` where nobody has to wait for it, else None. Raises StoreUnavailable."""
        ...

    def known(self) -> Versions:
        """As of a moment before the call ended, perhaps long before; waits for nobody.

        What is read from the store afterwards may be kept under it, once a decision has brought the same
        version: then nothing has changed in between. Raises StoreUnavailable.
        """
        ...


class NoVersions:
    """A VersionSource where nothing can be said: nothing that is kept is used."""

    async def current(self) -> Versions:
        return NO_VERSIONS

    def try_current(self) -> Versions:
        return NO_VERSIONS

    def known(self) -> Versions:
        return NO_VERSIONS


class Publisher(Protocol):
    """Tells everybody who keeps something that it may have changed; used by a store that can't do so itself.

    Around every transaction that changes something, also around one that finds that it was done before (a
    replayed answer is an acknowledgement too):

        async with publisher.changing(catalogue=True):
            ... begin, change, commit ...

    While the block runs, and for some seconds after a writer that died in it, the version is unknown to all.
    At the block's end, however it ends, the version moves. Never raises for an outage: what happens then is
    for the implementation to say. The caller is answered after the block, never within.
    """

    def changing(
        self, *, catalogue: bool = False, keyring: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """The time in which a change is made and committed."""
        ...


class NoPublisher:
    """For a store whose versions move by themselves."""

    def changing(
        self, *, catalogue: bool = False, keyring: bool = False
    ) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class LeaseWaitPublisher:
    """For a command that can't tell anybody: it waits after each change, before it says that it is done."""

    def __init__(self, wait: Callable[[], Awaitable[None]]) -> None:
        self._wait = wait

    @asynccontextmanager
    async def changing(self, *, catalogue: bool = False, keyring: bool = False) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._wait()
