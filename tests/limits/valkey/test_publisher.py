"""How a command tells the replicas of its changes."""

from __future__ import annotations

import asyncio

from petstore.limiter.valkey.publisher import open_publisher
from tests.support.valkey import PATIENT, ValkeyServer
from tests.support.waiting import until


async def test_changes_at_once_share_one_connection(server: ValkeyServer) -> None:
    """The first ones connect; no further connection is opened, and none is left open at the end."""

    def connections() -> int:
        return int(server.client("CLIENT", "LIST").count(b"name=petstore"))

    async def wait(reason: str) -> None:
        raise AssertionError(reason)

    async def change() -> None:
        async with publisher.changing(catalogue=True):
            seen.append(connections())

    publisher, seen = open_publisher(server.url, PATIENT, wait), list[int]()
    await asyncio.gather(*(change() for _ in range(5)))
    await publisher.close()
    assert seen == [1] * 5
    await until(lambda: connections() == 0)
