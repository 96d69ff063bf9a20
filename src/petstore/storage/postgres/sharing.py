"""Questions that many ask at once: one query is on its way at a time, and answers all who came before it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

K = TypeVar("K")
T = TypeVar("T")


class Shared(Generic[K, T]):
    """Whoever comes while a query is on its way shares the next one, which is sent later than they came.

    So each answer is as new as every request that uses it, and however many ask, they take one connection at
    most. Those who wait are bounded by the connections that the listener accepts. A failure is for those who
    shared the query.
    """

    def __init__(self, ask: Callable[[set[K]], Awaitable[T]]) -> None:
        self._ask = ask
        self._wanted: set[K] = set()
        self._next: asyncio.Task[T] | None = None
        self._sent: asyncio.Task[T] | None = None

    async def answer(self, wanted: K) -> T:
        """What `ask` returns for a set that `wanted` is in."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_task(self._send(self._sent))
            self._next.add_done_callback(_look_at)
        self._wanted.add(wanted)
        return await asyncio.shield(self._next)  # others wait for it too

    async def _send(self, before: asyncio.Task[T] | None) -> T:
        if before is not None and not before.done():
            await asyncio.wait([before])
        self._sent, self._next = self._next, None
        wanted, self._wanted = self._wanted, set()
        return await self._ask(wanted)


def _look_at(task: asyncio.Task[T]) -> None:
    """Its requests may all be gone: then nobody else asks how it ended."""
    if not task.cancelled():
        task.exception()
