"""Moves the versions in Valkey around every change, so that no process uses older cached values.

A writer's death, an outage, an emptied Valkey: docs/decisions/0012.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from itertools import count

from petstore.core.versions import LEASE_SECONDS, WRITER_SECONDS
from petstore.limiter.valkey.client import ValkeyClient
from petstore.limiter.valkey.connection import Unreachable
from petstore.limiter.valkey.observer import NoObserver
from petstore.limiter.valkey.scripts import (
    CATALOGUE,
    CATALOGUE_WRITERS,
    KEYRING,
    KEYRING_WRITERS,
    Scripts,
    command,
)
from petstore.limiter.valkey.url import usable

_WRITER_MS = int(WRITER_SECONDS * 1_000)


class ValkeyPublisher:
    """Implements versions.Publisher for a service: changes do not wait for the end of an outage.

    They are published at its end; until then the lease bounds the age of cached values. A change of keys
    waits for that: other processes may still reach Valkey.
    """

    def __init__(self, client: ValkeyClient) -> None:
        self._client = client
        self._name = secrets.token_hex(8).encode("ascii")
        self._numbers = count(1)
        self._pending: set[bytes] = set()
        self._publishing: asyncio.Task[None] | None = None
        client.on_return.append(self._start_pending)

    def changing(
        self, *, catalogue: bool = False, keyring: bool = False
    ) -> AbstractAsyncContextManager[None]:
        keys: tuple[bytes, ...] = (CATALOGUE, CATALOGUE_WRITERS) if catalogue else ()
        keys += (KEYRING, KEYRING_WRITERS) if keyring else ()
        return self._changing(keys)

    @asynccontextmanager
    async def _changing(self, keys: tuple[bytes, ...]) -> AsyncIterator[None]:
        writer = b"%b-%d" % (self._name, next(self._numbers))
        with suppress(Unreachable):  # "complete" alone moves the version too
            await self._publish(b"begin", writer, keys)
        try:
            yield
        finally:
            try:
                await self._publish(b"complete", writer, keys)
            except Unreachable as error:
                await self._not_published(keys, str(error))

    async def _not_published(self, keys: tuple[bytes, ...], reason: str) -> None:
        self._pending.update(keys[::2])
        if KEYRING in keys:
            await asyncio.sleep(LEASE_SECONDS)

    async def _publish(self, step: bytes, writer: bytes, keys: tuple[bytes, ...]) -> None:
        if not keys:
            return
        script = self._client.scripts.publish
        arguments = (b"%d" % len(keys), *keys, step, writer, b"%d" % _WRITER_MS)
        await self._client.call(script, command(b"EVALSHA", script.digest, *arguments))

    def _start_pending(self) -> None:
        if self._pending:
            self._publishing = asyncio.get_running_loop().create_task(self._publish_pending())

    async def _publish_pending(self) -> None:
        pending, self._pending = self._pending, set()
        keys: tuple[bytes, ...] = ()
        for version, writers in ((CATALOGUE, CATALOGUE_WRITERS), (KEYRING, KEYRING_WRITERS)):
            if version in pending:
                keys += (version, writers)
        try:
            await self._publish(b"complete", self._name, keys)
        except Unreachable:
            self._pending |= pending


class CommandPublisher(ValkeyPublisher):
    """Publishes for a command, whose user relies on a revocation: in an outage it waits until cached values
    expire.

    It connects at the first change.
    """

    def __init__(self, client: ValkeyClient, wait: Callable[[str], Awaitable[None]]) -> None:
        """`wait` gets the reason of the outage."""
        super().__init__(client)
        self._wait = wait
        self._reason = ""

    @asynccontextmanager
    async def _changing(self, keys: tuple[bytes, ...]) -> AsyncIterator[None]:
        if not self._client.is_up:
            self._reason = ""
            try:
                await self._client.open_once()
            except Unreachable as error:
                self._reason = str(error)
        async with super()._changing(keys):
            yield

    async def _not_published(self, keys: tuple[bytes, ...], reason: str) -> None:
        await self._wait(self._reason or reason)

    async def close(self) -> None:
        await self._client.close()


def open_publisher(
    url: str, timeout_seconds: float, wait: Callable[[str], Awaitable[None]]
) -> CommandPublisher:
    """The publisher of a command. During an outage it calls `wait` with the reason, which has to take
    LEASE_SECONDS (see core/versions.py). Raises ConfigurationError for the URL."""
    return CommandPublisher(ValkeyClient(usable(url), Scripts(), NoObserver(), timeout_seconds), wait)
