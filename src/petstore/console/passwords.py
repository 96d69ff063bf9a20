"""Hashes passwords by argon2id, in two threads: each hash takes 19 MiB."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from petstore.core.errors import Unavailable
from petstore.core.passwords import normalized

_T = TypeVar("_T")
# The least that OWASP's Password Storage Cheat Sheet recommends.
_MEMORY_KIB = 19 * 1_024
_PASSES = 2
_LANES = 1
_AT_ONCE = 2
_WAITING_MAX = 200


class Passwords:
    """Hashes and verifies. At most 200 calls wait for the threads."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=_PASSES, memory_cost=_MEMORY_KIB, parallelism=_LANES)
        self._threads = ThreadPoolExecutor(_AT_ONCE, "password")
        self._waiting = 0

    async def hash(self, password: str) -> str:
        """The hash to store. Raises Unavailable when too many calls wait."""
        return await self._in_thread(lambda: self._hasher.hash(normalized(password)))

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether `stored` is the password's hash. None takes as long, and is False. Raises Unavailable."""
        return await self._in_thread(lambda: self._matches(stored or self._dummy, password)) and bool(stored)

    def is_old(self, stored: str) -> bool:
        """Whether the hash has other parameters than new ones get."""
        return self._hasher.check_needs_rehash(stored)

    @cached_property
    def _dummy(self) -> str:
        return self._hasher.hash("of nobody")

    def _matches(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, normalized(password))
        except (VerificationError, InvalidHashError):
            return False

    async def _in_thread(self, work: Callable[[], _T]) -> _T:
        if self._waiting >= _WAITING_MAX:
            raise Unavailable("Many people sign in at this moment. Try again in a few seconds.")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._waiting -= 1
