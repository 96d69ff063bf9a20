"""The service at the far end of simulated networks: the real application, its accounts, and what it holds."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar, cast

import apsw

from petstore.core.digests import digest
from petstore.core.keys import Access
from petstore.core.limits.bans import BanState
from petstore.core.limits.windows import AccountWindows
from petstore.core.pets import NewPet
from petstore.limiter.memory import MemoryLimiter
from tests.support.journal import ACTOR
from tests.support.machine import memory
from tests.support.service import Answer, Shop, call, open_shop
from verification.simulation.virtual import VirtualClock, VirtualLoop

_T = TypeVar("_T")


class Down(Exception):
    """Nobody listens: the service is being started again."""


class Origin:
    """Serves one request at a time, in no time. How long one takes is up to the network."""

    def __init__(self, shop: Shop, loop: VirtualLoop) -> None:
        self.shop = shop
        self._loop = loop
        self._one = asyncio.Lock()
        self._down = False

    async def ask(self, method: str, target: str, headers: list[tuple[str, str]], body: bytes) -> Answer:
        """Carry out one request. Raises Down."""
        async with self._one:
            if self._down:
                raise Down
            with self._loop.standing():
                return await call(self.shop.application, method, target, headers, body)

    async def restart(self, seconds: float) -> None:
        """A clean stop and, after some seconds, a start; nothing while it is down."""
        async with self._one:
            if self._down:
                return
            self._down = True
            with self._loop.standing():
                await self.shop.application.stop()
        await asyncio.sleep(seconds)
        async with self._one:
            with self._loop.standing():
                await self.shop.application.start()
            self._down = False

    async def open_account(self, name: str, per_minute: int, per_day: int) -> str:
        """The account's first key."""
        with self._loop.standing():
            key, _ = await self.shop.open_account(name, "enterprise", per_minute, per_day, Access.WRITE)
        return key

    async def ids_of(self, key: str) -> tuple[int, int]:
        """Return the ids of the key's account and of the key itself."""
        with self._loop.standing():
            caller = await self.shop.store.keys.find_caller(digest(key.encode()))
        return caller.account_id, caller.key_id

    async def another_key(self, account: str) -> str:
        """One more key of an account."""
        with self._loop.standing():
            return str((await self.shop.store.keys.issue(account, "another", ACTOR)).secret)

    async def add(self, names: Sequence[str], category_id: int) -> list[int]:
        """Animals of the store's own; their ids."""
        with self._loop.standing():
            pets = self.shop.store.pets
            added = await asyncio.gather(*(pets.add(NewPet(name, category_id), ACTOR) for name in names))
        return [each.pet.id for each in added]

    def ban_of(self, key_id: int) -> BanState:
        """What the limiter holds against a key."""
        return self._limiter._bans.get(key_id, BanState())

    def windows_of(self, account_id: int) -> AccountWindows:
        """What the limiter has counted for an account."""
        return self._limiter._windows.get(account_id, AccountWindows())

    @property
    def _limiter(self) -> MemoryLimiter:
        return cast("MemoryLimiter", self.shop.application.service.flusher._limiter)

    def animals(self, category_id: int) -> Counter[str]:
        """How often the file has an animal of each name, in one category."""
        return self._counted("SELECT name, count(*) FROM pets WHERE category_id = ? GROUP BY 1", category_id)

    def orders(self, category_id: int) -> Counter[str]:
        """How often an animal of each name was ordered, in one category; cancelled orders included."""
        query = (
            "SELECT name, count(*) FROM orders JOIN pets ON pets.id = pet_id WHERE category_id = ? GROUP BY 1"
        )
        return self._counted(query, category_id)

    def _counted(self, query: str, category_id: int) -> Counter[str]:
        with closing(apsw.Connection(str(self.shop.path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return Counter(dict(connection.execute(query, (category_id,))))


def with_origin(work: Callable[[Origin, VirtualLoop], Awaitable[_T]]) -> _T:
    """What comes of work in a service with an empty store, on a loop of simulated time."""
    loop = VirtualLoop()

    async def use(folder: Path) -> _T:
        with loop.standing():
            opened = open_shop(folder, VirtualClock(loop), log_level="error")  # type: ignore[arg-type]
            shop = await opened.__aenter__()
        try:
            return await work(Origin(shop, loop), loop)
        finally:
            with loop.standing():
                await opened.__aexit__(None, None, None)

    asyncio.set_event_loop(loop)
    try:
        with tempfile.TemporaryDirectory(dir=memory()) as folder:
            return loop.run_until_complete(use(Path(folder)))
    finally:
        asyncio.set_event_loop(None)
        loop.close()
