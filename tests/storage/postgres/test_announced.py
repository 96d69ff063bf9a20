"""Replicas keep what they read until a write is announced (docs/decisions/0012): PostgreSQL alone has any."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from petstore.core.errors import PetstoreError
from petstore.storage.backend import backend_for
from tests.storage.contract.test_journal import WALK
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import shell

PETS, CATEGORIES = "SELECT * FROM pets ORDER BY id", "SELECT * FROM categories ORDER BY id"
DIGESTS = "SELECT digest FROM api_keys ORDER BY id"


class Announced:
    """It stands for the publisher."""

    def __init__(self) -> None:
        self.catalogue = self.keyring = False

    @asynccontextmanager
    async def changing(self, *, catalogue: bool = False, keyring: bool = False) -> AsyncIterator[None]:
        self.catalogue |= catalogue
        self.keyring |= keyring
        yield


async def test_what_changes_animals_or_callers_is_announced(database: str, clock: ManualClock) -> None:
    """Every method of a store announces animals, names of categories, and what a key may do."""
    announced, changes = Announced(), 0
    store = backend_for(database).open(clock, publisher=announced)
    pets, callers = list[object](), list[object]()
    walk = [(name, work) for name, work, _ in WALK]
    walk.insert(1, ("keys.issue", lambda store: store.keys.issue("shop", "test", ACTOR)))
    with shell(database) as execute:
        for name, work in walk:
            announced.catalogue = announced.keyring = False
            with suppress(PetstoreError):
                await work(store)
            pets_then, callers_then = pets, callers
            pets = [*execute(PETS), *execute(CATEGORIES)]
            callers = [await store.keys.find_caller(digest) for (digest,) in execute(DIGESTS)]
            assert announced.catalogue or pets == pets_then, name
            assert announced.keyring or callers == callers_then, name
            changes += (pets, callers) != (pets_then, callers_then)
    await store.close()
    assert changes > 15
