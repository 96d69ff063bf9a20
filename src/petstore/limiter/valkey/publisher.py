"""Moves the versions in Valkey around every change, so that no replica uses what was kept before it.

What a writer's death, an outage and an emptied Valkey do to this: docs/decisions/0012.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from itertools import count

from petstore.core.versions import WRITER_SECONDS
from petstore.limiter.valkey.client import ValkeyClient
from petstore.limiter.valkey.connection import Unreachable
from petstore.limiter.valkey.scripts import CATALOGUE, CATALOGUE_WRITERS, KEYRING, KEYRING_WRITERS, command

_WRITER_MS = int(WRITER_SECONDS * 1_000)


class ValkeyPublisher:
    """Implements versions.Publisher for a service: an outage is no reason to wait.

    A change that could not be told is told when the link is back; until then the lease bounds its age.
    """

    def __init__(self, client: ValkeyClient) -> None:
        self._client = client
        self._name = secrets.token_hex(8).encode("ascii")
        self._numbers = count(1)
        self._pending: set[bytes] = set()
        self._publishing: asyncio.Task[None] | None = None
        client.on_return.append(self._publish_pending)

    def changing(
        self, *, catalogue: bool = False, keyring: bool = False
    ) -> AbstractAsyncContextManager[None]:
        keys: tuple[bytes, ...] = (CATALOGUE, CATALOGUE_WRITERS) if catalogue else ()
        keys += (KEYRING, KEYRING_WRITERS) if keyring else ()
        return self._changing(keys)

    @asynccontextmanager
    async def _changing(self, keys: tuple[bytes, ...]) -> AsyncIterator[None]:
        writer = b"%b-%d" % (self._name, next(self._numbers))
        with suppress(Unreachable):  # settling moves the version all the same
            await self._tell(b"begin", writer, keys)
        try:
            yield
        finally:
            try:
                await self._tell(b"settle", writer, keys)
            except Unreachable as error:
                await self._could_not_tell(keys, str(error))

    async def _could_not_tell(self, keys: tuple[bytes, ...], reason: str) -> None:
        self._pending.update(keys[::2])

    async def _tell(self, what: bytes, writer: bytes, keys: tuple[bytes, ...]) -> None:
        if not keys:
            return
        script = self._client.scripts.publish
        arguments = (b"%d" % len(keys), *keys, what, writer, b"%d" % _WRITER_MS)
        await self._client.call(script, command(b"EVALSHA", script.digest, *arguments))

    def _publish_pending(self) -> None:
        if self._pending:
            self._publishing = asyncio.get_running_loop().create_task(self._complete_pending())

    async def _complete_pending(self) -> None:
        pending, self._pending = self._pending, set()
        keys: tuple[bytes, ...] = ()
        for version, writers in ((CATALOGUE, CATALOGUE_WRITERS), (KEYRING, KEYRING_WRITERS)):
            if version in pending:
                keys += (version, writers)
        try:
            await self._tell(b"settle", self._name, keys)
        except Unreachable:
            self._pending |= pending


class CommandPublisher(ValkeyPublisher):
    """For a command: who is told that a key is revoked may rely on it, so it waits where it can't tell.

    It connects when there is something to tell.
    """

    def __init__(self, client: ValkeyClient, wait: Callable[[str], Awaitable[None]]) -> None:
        """`wait` is told why."""
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

    async def _could_not_tell(self, keys: tuple[bytes, ...], reason: str) -> None:
        await self._wait(self._reason or reason)

    async def close(self) -> None:
        """Let go of the connection."""
        await self._client.close()
