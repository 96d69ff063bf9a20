"""Clocks, waiting and random numbers of clients; and what all clients of a process share."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from petstore_client.limiter import Limiter


class _Resettable(Protocol):
    def reset(self) -> None:
        """Forget what belongs to the parent."""


_resettable: weakref.WeakSet[_Resettable] = weakref.WeakSet()


def reset_in_child(each: _Resettable) -> None:
    """Call `reset` in every process that is forked from now on."""
    _resettable.add(each)


def _after_fork() -> None:
    for each in list(_resettable):
        each.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


async def _wait_async(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, at most `seconds`.

    Python 3.11's `wait_for` loses a cancellation that comes with the event.
    """
    waiting = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait([waiting], timeout=seconds)
    finally:
        waiting.cancel()


@dataclass(eq=False)
class Runtime:
    """The surroundings of clients; one Runtime for a process, unless a test steers them.

    `monotonic` and `wall` (Unix time) are in seconds, `random` is in [0, 1). `wait` and `wait_async` return
    when the event is set or the seconds have passed. Clients with the same Runtime, address and key share one
    limiter, so a test simulates several processes by several Runtimes.
    """

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    random: Callable[[], float] = random.random
    wait: Callable[[threading.Event, float], object] = threading.Event.wait
    wait_async: Callable[[asyncio.Event, float], Awaitable[object]] = _wait_async
    warned: set[str] = field(default_factory=set, init=False)  # operations whose deprecation was warned of
    calls: set[object] = field(default_factory=set, init=False)  # under way
    _limiters: dict[tuple[str, bytes], Limiter] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        reset_in_child(self)

    def __reduce__(self) -> str:
        raise TypeError("A client does not pass to another process. Make one there.")

    def limiter(self, address: str, key: str) -> Limiter:
        """The limiter of a key at an address. It stays for the life of the process, as a ban must."""
        place = (address, hashlib.sha256(key.encode()).digest())
        with self._lock:
            if place not in self._limiters:
                self._limiters[place] = Limiter(self.random)
            return self._limiters[place]

    @contextmanager
    def call(self) -> Iterator[None]:
        """Count a call, with its waits. It takes no lock: the garbage collector may end a call anywhere."""
        self.calls.add(this := object())
        try:
            yield
        finally:
            self.calls.discard(this)

    def reset(self) -> None:
        """Begin anew in a forked process, where no thread holds a lock or waits for an answer."""
        self._lock = threading.Lock()
        self.calls = set()
        for limiter in list(self._limiters.values()):
            limiter.restart()


PROCESS = Runtime()
