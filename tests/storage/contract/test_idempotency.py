"""Idempotency-Key in every store: one animal for one key, whatever happens at the same time (I6)."""

from __future__ import annotations

import asyncio

import pytest

from petstore.core.clock import SystemClock
from petstore.core.errors import IdempotencyKeyInUse, IdempotencyKeyReused
from petstore.core.idempotency import IdempotencyKey
from petstore.core.limits.plans import FREE
from petstore.core.pets import AddedPet, NewPet, PetChange, PetQuery, PetStatus
from petstore.storage.store import Store
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR

REX = NewPet("Rex", 1)
KEY = IdempotencyKey(1, "order-1")
DAY_SECONDS = 86_400
# The clock of production: PostgreSQL's statements take their own time.
by_the_system_clock = pytest.mark.parametrize("clock", [SystemClock()], ids=["system clock"])


@pytest.fixture
async def store(backend: SharedData) -> Store:
    """Two accounts."""
    opened = backend.open()
    for name in ("a", "b"):
        await opened.accounts.add(name, FREE, ACTOR)
    return opened


async def count(store: Store) -> int:
    return len((await store.pets.page(PetQuery(limit=100))).pets)


@by_the_system_clock
class TestReplay:
    """A repeated key and animal get the first answer."""

    async def test_it_is_the_answer_of_then(self, store: Store) -> None:
        """It is, even if the animal was sold or removed in the meantime. Nothing is added."""
        first = await store.pets.add(REX, ACTOR, KEY)
        assert await store.pets.add(REX, ACTOR, KEY) == AddedPet(first.pet, True)
        assert (await count(store), first.replayed) == (1, False)
        await store.pets.change(1, PetChange(status=PetStatus.SOLD), "staff")
        assert (await store.pets.add(REX, ACTOR, KEY)).pet == first.pet
        await store.pets.remove(1, ACTOR)
        assert (await store.pets.add(REX, ACTOR, KEY)) == AddedPet(first.pet, True)

    async def test_keys_belong_to_their_account(self, store: Store) -> None:
        """Another account's same words are another key."""
        await store.pets.add(REX, ACTOR, KEY)
        other = await store.pets.add(NewPet("Tom", 2), ACTOR, IdempotencyKey(2, KEY.text))
        assert (other.pet.id, other.replayed) == (2, False)

    async def test_keys_are_compared_exactly(self, store: Store) -> None:
        """Case and every character count."""
        for is_there in (False, True):
            for text in ("a", "A", "a ", "é", "'", "x" * 255):
                assert (await store.pets.add(REX, ACTOR, IdempotencyKey(1, text))).replayed is is_there


@by_the_system_clock
async def test_a_key_for_another_animal_is_refused(store: Store) -> None:
    """Every member of the animal counts; the key goes on to mean the first."""
    await store.pets.add(REX, ACTOR, KEY)
    sold = NewPet("Rex", 1, PetStatus.SOLD)
    for other in (NewPet("Rex ", 1), NewPet("Rex", 2), sold, NewPet("rex", 1)):
        with pytest.raises(IdempotencyKeyReused, match="another request"):
            await store.pets.add(other, ACTOR, KEY)
    assert await count(store) == 1
    assert (await store.pets.add(REX, ACTOR, KEY)).replayed


class TestAge:
    """A key is kept for 24 hours."""

    async def test_after_that_it_may_mean_another_animal(self, store: Store, clock: ManualClock) -> None:
        """A millisecond short of it it means the first one still; the other one then has 24 hours again."""
        await store.pets.add(REX, ACTOR, KEY)
        clock.advance(DAY_SECONDS - 0.001)
        assert (await store.pets.add(REX, ACTOR, KEY)).replayed
        clock.advance(0.001)
        tom = await store.pets.add(NewPet("Tom", 2), ACTOR, KEY)
        clock.advance(DAY_SECONDS - 1)
        assert await store.pets.add(NewPet("Tom", 2), ACTOR, KEY) == AddedPet(tom.pet, True)
        assert (await count(store), tom.replayed) == (2, False)

    async def test_a_purge_removes_what_is_older_and_nothing_else(
        self, backend: SharedData, store: Store, clock: ManualClock
    ) -> None:
        """A large heap goes bit by bit. What is a millisecond short of its day stays."""
        for number in range(3):
            await store.pets.add(REX, ACTOR, IdempotencyKey(1, f"old-{number}"))
        clock.advance(0.001)
        await store.pets.add(REX, ACTOR, KEY)
        clock.advance(DAY_SECONDS - 0.001)
        await store.purge(clock.now_ms())
        assert backend.execute("SELECT key FROM creations") == [("order-1",)]
        assert (await store.pets.add(REX, ACTOR, KEY)).replayed


@by_the_system_clock
class TestRace:
    """Fifty at once."""

    async def test_one_process_adds_one_animal(self, store: Store) -> None:
        """One is answered, the others are told that it is being carried out; a retry gets the animal."""
        results = await asyncio.gather(
            *(store.pets.add(REX, ACTOR, KEY) for _ in range(50)), return_exceptions=True
        )
        created = [result for result in results if isinstance(result, AddedPet)]
        in_use = [result for result in results if isinstance(result, IdempotencyKeyInUse)]
        assert (len(created), len(in_use)) == (1, 49)
        assert in_use[0].retry_after_seconds == 1
        assert await count(store) == 1
        assert (await store.pets.add(REX, ACTOR, KEY)).pet == created[0].pet

    @through_pgbouncer_too
    async def test_several_processes_add_one_animal(self, backend: SharedData, store: Store) -> None:
        """Five stores on the same data, ten each, one after the other: all get the same animal, if not at
        once, then when they ask again."""
        stores = [store, *(backend.open() for _ in range(4))]

        async def until_done(one: Store) -> AddedPet:
            while True:
                try:
                    return await one.pets.add(REX, ACTOR, KEY)
                except IdempotencyKeyInUse:  # another process is at it
                    continue

        async def ten(one: Store) -> list[AddedPet]:
            return [await until_done(one) for _ in range(10)]

        results = [created for many in await asyncio.gather(*map(ten, stores)) for created in many]
        assert {created.pet.id for created in results} == {1}
        assert sum(not created.replayed for created in results) == 1
        assert await count(store) == 1

    async def test_a_client_that_goes_away_does_not_free_a_second_animal(self, store: Store) -> None:
        """The request is cancelled on the way; the retry finds what was carried out all the same."""
        first = asyncio.create_task(store.pets.add(REX, ACTOR, KEY))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        again = await store.pets.add(REX, ACTOR, KEY)
        assert (again.pet.id, again.replayed) == (1, True)
        assert await count(store) == 1
