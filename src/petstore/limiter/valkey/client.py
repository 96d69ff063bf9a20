"""The client of Valkey: one connection, and during an outage an attempt to connect every half second.

Calls fail at once during an outage. Any failure of a call begins one and only a new connection ends it: the
name may lead to another server by then.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import libvalkey

from petstore.limiter.valkey.connection import Connection, Unreachable, connect, raise_for
from petstore.limiter.valkey.inspection import SNAPSHOTS, persistence
from petstore.limiter.valkey.observer import LimiterObserver, NoObserver
from petstore.limiter.valkey.scripts import CAN_WRITE, Script, Scripts
from petstore.limiter.valkey.url import ValkeyUrl, usable

PROBE_SECONDS = 0.5
_NEW_DATA_SET = 1  # a reply of arrive.lua


async def open_client(
    url: str, timeout_seconds: float, observer: LimiterObserver | None = None, scripts: Scripts | None = None
) -> ValkeyClient:
    """Connect, in one second at most. A failure begins an outage, and so does a reply that takes longer than
    `timeout_seconds`. Raises ConfigurationError for the URL."""
    client = ValkeyClient(usable(url), scripts or Scripts(), observer or NoObserver(), timeout_seconds)
    await client.open()
    await client.check_persistence()
    return client


class ValkeyClient:
    """`outages` is the number of outages so far; `on_return` is called at the end of each."""

    def __init__(
        self, url: ValkeyUrl, scripts: Scripts, observer: LimiterObserver, timeout_seconds: float
    ) -> None:
        self.scripts = scripts
        self.outages = 0
        self.on_return: list[Callable[[], Any]] = []
        self._url = url
        self.observer = observer
        self._timeout_seconds = timeout_seconds
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        self._probing: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        """Whether Valkey can be reached; during an outage callers decide for themselves at once."""
        return self._connection is not None

    async def open(self) -> None:
        """Connect. A failure begins an outage, which ends as any other."""
        try:
            await self.open_once()
        except Unreachable as error:
            self._begin_outage(str(error))

    async def open_once(self) -> None:
        """Connect, unless there is a connection. Raises Unreachable after one failed attempt.

        Simultaneous calls share one connection.
        """
        async with self._opening:
            if self._connection is None:
                self._connection = await self._connect()

    async def _connect(self) -> Connection:
        load = (self.scripts.take.load, self.scripts.publish.load)
        connection = await connect(self._url, CAN_WRITE, *load, timeout_seconds=self._timeout_seconds)
        try:
            data_set = await connection.call(self.scripts.arrive)
            raise_for(data_set)
        except BaseException:
            await connection.close()
            raise
        if data_set:
            self.observer.another_data_set(known=data_set == _NEW_DATA_SET)
        if connection.is_lost:
            raise Unreachable("the connection was lost at once")
        connection.on_lost = lambda reason: self._lost(reason, connection)
        return connection

    async def check_persistence(self) -> None:
        """Notify the observer if a restart of the server would restore older counts."""
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(Unreachable):
                if await persistence(connection) == SNAPSHOTS:
                    self.observer.keeps_snapshots_only()

    async def call(self, script: Script, evalsha: bytes) -> Any:
        """The script's reply. Raises Unreachable for any other outcome, which begins an outage."""
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

    def send(self, encode: Callable[[], bytes], callback: Callable[[Any], None]) -> None:
        """Send as Connection.send does; raises Unreachable at once during an outage."""
        if self._connection is None:
            raise Unreachable("there is no connection")
        self._connection.send(encode, callback)

    async def check(self) -> None:
        """Try to write, as requests do: an outage begins if that fails. Does nothing during one."""
        connection = self._connection
        if connection is not None:
            with contextlib.suppress(Unreachable):
                reply = await connection.call(CAN_WRITE)
                if isinstance(reply, libvalkey.ReplyError):
                    connection.give_up(str(reply))

    def _lost(self, reason: str, connection: Connection) -> None:
        if self._connection is connection:
            self._connection = None
            self._begin_outage(reason)

    def _begin_outage(self, reason: str) -> None:
        self.outages += 1
        self.observer.outage_began(reason)
        if self._probing is None or self._probing.done():  # a command may have connected before the attempt
            self._probing = asyncio.get_running_loop().create_task(self._probe())

    async def _probe(self) -> None:
        while self._connection is None:
            await asyncio.sleep(PROBE_SECONDS)
            with contextlib.suppress(Unreachable):
                await self.open_once()
        self.observer.outage_ended()
        for callback in self.on_return:
            callback()

    async def close(self) -> None:
        """Close the connection, and end the attempts to connect."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait([self._probing])
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()
