"""Queries that many requests share: one runs at a time and answers all requests that came before it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

_K = TypeVar("_K")
_T = TypeVar("_T")
_WAIT_SECONDS = 1.0


class CoalescedQuery(Generic[_K, _T]):
    """Requests that come while the query runs share the next one, so each answer is newer than its requests.

    Together they take one connection, and one more for each second in which the server does not answer. The
    number of waiters is bounded by the listener's connections. A failed query fails for those that shared it.
    """

    def __init__(self, ask: Callable[[set[_K]], Awaitable[_T]], wait_seconds: float = _WAIT_SECONDS) -> None:
        self._ask = ask
        self._wait_seconds = wait_seconds
        self._wanted: set[_K] = set()
        self._under_way: asyncio.Future[None] | None = None
        self._next: asyncio.Task[_T] | None = None

    async def answer(self, wanted: _K) -> _T:
        """The result of an `ask` whose set contains `wanted`."""
        before = self._under_way
        if self._next is None:
            if before is None:
                return await self._send({wanted})
            self._next = asyncio.get_running_loop().create_task(self._send_next(before))
            self._next.add_done_callback(retrieve_error)
        self._wanted.add(wanted)
        return await asyncio.shield(self._next)  # other requests wait for it too

    async def _send_next(self, before: asyncio.Future[None]) -> _T:
        await asyncio.wait([before], timeout=self._wait_seconds)
        wanted, self._wanted = self._wanted, set()
        self._next = None
        return await self._send(wanted)

    async def _send(self, wanted: set[_K]) -> _T:
        answered = self._under_way = asyncio.get_running_loop().create_future()
        try:
            return await self._ask(wanted)
        finally:
            answered.set_result(None)
            if self._under_way is answered:
                self._under_way = None


def retrieve_error(task: asyncio.Task[Any]) -> None:
    """Keep asyncio from logging an error of which all waiters were cancelled."""
    if not task.cancelled():
        task.exception()
