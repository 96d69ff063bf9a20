"""Versions of the catalogue and of the keyring: a cached value is valid while its version is the current one.

In SQLite triggers change a version; where counters are shared, the writer does through a Publisher.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Protocol

import msgspec

# Only compared for equality. None is an unknown version: then the cache is neither read nor filled.
Version = Hashable


class Versions(msgspec.Struct, frozen=True, gc=False):
    """A change of an animal or of a category's name gives a new `catalogue`, one of an account or a key a new
    `keyring`."""

    catalogue: Version | None
    keyring: Version | None


NO_VERSIONS = Versions(None, None)

# A cached value is used for at most this long with shared counters, even if its version is current.
LEASE_SECONDS = 5.0
# The version stays unknown for this long after a writer died: longer than a commit can take.
WRITER_SECONDS = 10.0


class VersionSource(Protocol):
    """What reads the versions: from the store, unless counters are shared."""

    async def current(self) -> Versions:
        """The versions at a moment after the call began. Raises StoreUnavailable."""

    def try_current(self) -> Versions | None:
        """`current` without waiting; None when it would wait. Raises StoreUnavailable."""

    def known(self) -> Versions:
        """The last versions that this process read, perhaps long ago. Waits for no server; raises
        StoreUnavailable.

        A value that is read from the store after this call may be cached under its version if the request's
        decision has the same version: nothing changed in between.
        """


class NoVersions:
    """A VersionSource that knows no version, so that nothing is cached."""

    async def current(self) -> Versions:
        return NO_VERSIONS

    def try_current(self) -> Versions:
        return NO_VERSIONS

    def known(self) -> Versions:
        return NO_VERSIONS


class Publisher(Protocol):
    """Invalidates the caches of all processes around a write, for a store that has no triggers for it.

        async with publisher.changing(catalogue=True):
            ... begin, change, commit ...

    While the block runs the version is unknown to all processes; at its end, also after an error, it is a new
    one. After a writer that died within, it stays unknown for WRITER_SECONDS. A transaction that finds its
    work done before, as a replay does, needs the block too. Answer the client after the block. An outage
    raises nothing; each implementation says what happens then.
    """

    def changing(
        self, *, catalogue: bool = False, keyring: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """Wrap it around the transaction."""


class NoPublisher:
    """Implements Publisher for a store with triggers."""

    def changing(
        self, *, catalogue: bool = False, keyring: bool = False
    ) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class LeaseWaitPublisher:
    """Implements Publisher for a command without Valkey: after each change it waits for the leases to end."""

    def __init__(self, wait: Callable[[], Awaitable[None]]) -> None:
        self._wait = wait

    @asynccontextmanager
    async def changing(self, *, catalogue: bool = False, keyring: bool = False) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await self._wait()
