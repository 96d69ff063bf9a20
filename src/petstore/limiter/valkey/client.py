"""The link to Valkey: one connection, and while there is none, a probe every half second.

Nothing waits for the probe. Whatever goes wrong with a call is an outage, and a new connection its end: what
is wrong may be the server behind a name.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import libvalkey

from petstore.limiter.valkey.connection import PATIENCE_SECONDS, Connection, Unreachable, connect, raise_for
from petstore.limiter.valkey.inspection import SNAPSHOTS, persistence
from petstore.limiter.valkey.observer import LimiterObserver
from petstore.limiter.valkey.scripts import CAN_WRITE, Script, Scripts
from petstore.limiter.valkey.url import ValkeyUrl

PROBE_SECONDS = 0.5
_ANOTHER = 1


class ValkeyClient:
    """`outages` counts them: what was true before one need not be true after it."""

    def __init__(
        self,
        url: ValkeyUrl,
        scripts: Scripts,
        observer: LimiterObserver,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self.scripts = scripts
        self.outages = 0
        self.on_return: list[Callable[[], Any]] = []
        self._url = url
        self._observer = observer
        self._patience_seconds = patience_seconds
        self._connection: Connection | None = None
        self._probing: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        """Whether a call is worth making; while not, callers decide for themselves at once."""
        return self._connection is not None

    async def open(self) -> None:
        """Connect; when that fails, go on trying beside what the caller does."""
        try:
            await self.open_once()
        except Unreachable as error:
            self._began(str(error))

    async def open_once(self) -> None:
        """Connect. Raises Unreachable, and tries no more then."""
        load = (self.scripts.take.load, self.scripts.publish.load)
        connection = await connect(self._url, CAN_WRITE, *load, patience_seconds=self._patience_seconds)
        try:
            data_set = await connection.call(self.scripts.arrive)
            raise_for(data_set)
        except BaseException:
            await connection.close()
            raise
        if data_set:
            self._observer.another_data_set(known=data_set == _ANOTHER)
        if connection.is_lost:
            raise Unreachable("the connection was lost at once")
        connection.on_lost = lambda reason: self._lost(reason, connection)
        self._connection = connection

    async def look_at_persistence(self) -> None:
        """Tell of a server that may come back with older counts."""
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(Unreachable):
                if await persistence(connection) == SNAPSHOTS:
                    self._observer.keeps_snapshots_only()

    async def call(self, script: Script, evalsha: bytes) -> Any:
        """The script's reply. Raises Unreachable for every other outcome; the outage has begun then."""
        connection = self._connection
        if connection is None:
            raise Unreachable("there is no connection")
        reply = await connection.call(evalsha)
        if isinstance(reply, libvalkey.ReplyError):
            if str(reply).startswith("NOSCRIPT"):
                reply = await connection.call(script.in_full(evalsha))
            try:
                raise_for(reply)
            except Unreachable as error:
                connection.give_up(str(error))
                raise
        return reply

    def _lost(self, reason: str, connection: Connection) -> None:
        if self._connection is connection:
            self._connection = None
            self._began(reason)

    def _began(self, reason: str) -> None:
        self.outages += 1
        self._observer.outage_began(reason)
        self._probing = asyncio.get_running_loop().create_task(self._probe())

    async def _probe(self) -> None:
        while self._connection is None:
            await asyncio.sleep(PROBE_SECONDS)
            with contextlib.suppress(Unreachable):
                await self.open_once()
        self._observer.outage_ended()
        for told in self.on_return:
            told()

    async def close(self) -> None:
        """Let go, for good."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait([self._probing])
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
