"""Idempotency-Key in every store: one animal for one key, whatever happens at the same time (I6)."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from petstore.console.idempotency import NO_ACCOUNT
from petstore.core.clock import SystemClock
from petstore.core.errors import Conflict, IdempotencyKeyInUse, IdempotencyKeyReused
from petstore.core.idempotency import Creation, Idempotency
from petstore.core.limits.plans import FREE
from petstore.core.pets import Created, NewPet, PageQuery, PetChange, PetStatus
from petstore.storage.store import Store
from petstore.transactions.idempotency import create_once
from petstore.transactions.pets import add_pet
from petstore.transactions.script import CATALOGUE, Database, Script
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR

REX = NewPet("Rex", 1)
KEY = Idempotency(1, "order-1")
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
    return len((await store.pets.page(PageQuery(limit=100))).pets)


@by_the_system_clock
class TestReplay:
    """The same key and the same animal: the same answer."""

    async def test_a_second_request_gets_the_first_ones_animal(self, store: Store) -> None:
        """Marked as replayed; nothing is added."""
        first = await store.pets.add(REX, ACTOR, KEY)
        again = await store.pets.add(NewPet("Rex", 1, PetStatus.AVAILABLE), ACTOR, KEY)
        assert (first.replayed, again.replayed) == (False, True)
        assert first.pet == again.pet
        assert await count(store) == 1

    async def test_it_is_the_answer_of_then(self, store: Store) -> None:
        """Also when the animal was sold or removed in the meantime."""
        first = await store.pets.add(REX, ACTOR, KEY)
        await store.pets.change(1, PetChange(status=PetStatus.SOLD), "staff")
        assert (await store.pets.add(REX, ACTOR, KEY)).pet == first.pet
        await store.pets.remove(1, ACTOR)
        assert (await store.pets.add(REX, ACTOR, KEY)) == Created(first.pet, True)

    async def test_it_survives_a_restart(self, backend: SharedData, store: Store) -> None:
        """And a purge: it is kept in the same transaction as the animal."""
        first = await store.pets.add(REX, ACTOR, KEY)
        await store.purge(SystemClock().now_ms())
        await store.close()
        assert await backend.open().pets.add(REX, ACTOR, KEY) == Created(first.pet, True)

    async def test_a_form_needs_no_account(self, store: Store) -> None:
        """Its key is as good as an account's."""
        key = Idempotency(NO_ACCOUNT, "form")
        first = await store.pets.add(REX, ACTOR, key)
        assert await store.pets.add(REX, ACTOR, key) == Created(first.pet, True)

    async def test_keys_belong_to_their_account(self, store: Store) -> None:
        """Another account's same words are another key."""
        await store.pets.add(REX, ACTOR, KEY)
        other = await store.pets.add(NewPet("Tom", 2), ACTOR, Idempotency(2, KEY.key))
        assert (other.pet.id, other.replayed) == (2, False)

    async def test_keys_are_compared_exactly(self, store: Store) -> None:
        """Case and every character count."""
        for is_there in (False, True):
            for text in ("a", "A", "a ", "é", "'", "x" * 255):
                assert (await store.pets.add(REX, ACTOR, Idempotency(1, text))).replayed is is_there


@by_the_system_clock
class TestReuse:
    """The same key for another animal is a mistake of the client's."""

    async def test_it_is_refused_and_nothing_is_added(self, store: Store) -> None:
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

    @pytest.mark.parametrize(("seconds", "replayed"), [(DAY_SECONDS - 0.001, True), (DAY_SECONDS, False)])
    async def test_it_means_the_animal_for_24_hours(
        self, store: Store, clock: ManualClock, seconds: float, replayed: bool
    ) -> None:
        """A millisecond short of it still; from then on it is a new key."""
        await store.pets.add(REX, ACTOR, KEY)
        clock.advance(seconds)
        assert (await store.pets.add(REX, ACTOR, KEY)).replayed is replayed
        assert await count(store) == (1 if replayed else 2)

    async def test_after_that_it_may_mean_another_animal(self, store: Store, clock: ManualClock) -> None:
        """And is kept for 24 hours again."""
        await store.pets.add(REX, ACTOR, KEY)
        clock.advance(DAY_SECONDS)
        tom = await store.pets.add(NewPet("Tom", 2), ACTOR, KEY)
        clock.advance(DAY_SECONDS - 1)
        assert await store.pets.add(NewPet("Tom", 2), ACTOR, KEY) == Created(tom.pet, True)

    async def test_a_purge_removes_what_is_older_and_nothing_else(
        self, backend: SharedData, store: Store, clock: ManualClock
    ) -> None:
        """Also a large heap of them, bit by bit. What is a millisecond short of its day stays."""
        for number in range(3):
            await store.pets.add(REX, ACTOR, Idempotency(1, f"old-{number}"))
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
        created = [result for result in results if isinstance(result, Created)]
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

        async def until_done(one: Store) -> Created:
            while True:
                try:
                    return await one.pets.add(REX, ACTOR, KEY)
                except IdempotencyKeyInUse:  # another process is at it
                    continue

        async def ten(one: Store) -> list[Created]:
            return [await until_done(one) for _ in range(10)]

        results = [created for many in await asyncio.gather(*map(ten, stores)) for created in many]
        assert {created.pet.id for created in results} == {1}
        assert sum(not created.replayed for created in results) == 1
        assert await count(store) == 1

    async def test_a_client_that_goes_away_does_not_free_a_second_animal(self, store: Store) -> None:
        """Its request is cancelled on the way; the retry finds what was carried out all the same."""
        first = asyncio.create_task(store.pets.add(REX, ACTOR, KEY))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        again = await store.pets.add(REX, ACTOR, KEY)
        assert (again.pet.id, again.replayed) == (1, True)
        assert await count(store) == 1


class TestAnyCreation:
    """The script for every further resource: what it creates and the key are one transaction."""

    @pytest.fixture
    def creation(self) -> Creation:
        return Creation(KEY, "order", b"\0" * 32)

    async def test_it_is_created_once(self, store: Store, creation: Creation) -> None:
        """Of ten at once one creates; the others are told to come again, and get the same then."""

        async def attempt(_: int) -> tuple[int, bool] | IdempotencyKeyInUse:
            try:
                return await scripts(store).write(
                    lambda: create_once(creation, None, lambda: add_pet(REX, ACTOR, 0)), CATALOGUE
                )
            except IdempotencyKeyInUse as error:
                return error

        results = await asyncio.gather(*map(attempt, range(10)))
        assert [result for result in results if result == (1, False)] == [(1, False)]
        assert await attempt(0) == (1, True)
        assert await count(store) == 1

    async def test_another_resource_is_a_reuse(
        self, store: Store, creation: Creation, clock: ManualClock
    ) -> None:
        """In both directions, whatever the two bodies say."""
        now_ms = clock.now_ms()
        await scripts(store).write(
            lambda: create_once(creation, now_ms, lambda: add_pet(REX, ACTOR, 0)), CATALOGUE
        )
        with pytest.raises(IdempotencyKeyReused, match="another request"):
            await store.pets.add(REX, ACTOR, KEY)
        await store.pets.add(REX, ACTOR, other := Idempotency(1, "other"))
        with pytest.raises(IdempotencyKeyReused, match="another request"):
            await scripts(store).write(
                lambda: create_once(
                    replace(creation, idempotency=other), now_ms, lambda: add_pet(REX, ACTOR, 0)
                ),
                CATALOGUE,
            )

    async def test_a_refusal_keeps_nothing(self, store: Store, creation: Creation) -> None:
        """Neither what was created before it, nor the key."""

        def refused() -> Script[int]:
            yield from add_pet(REX, ACTOR, 0)
            raise Conflict("no")

        with pytest.raises(Conflict):
            await scripts(store).write(lambda: create_once(creation, None, refused), CATALOGUE)
        assert await count(store) == 0
        assert not (await store.pets.add(REX, ACTOR, KEY)).replayed


def scripts(store: Store) -> Database:
    """What runs the store's scripts."""
    return store._database
