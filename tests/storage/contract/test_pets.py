"""What every store of animals does: add, get, page, change a status, keep the history."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from petstore.core.errors import Conflict, NotFound
from petstore.core.pets import INT64_MAX, INT64_MIN, NewPet, PageQuery, Pet, PetStatus, StatusChange
from petstore.storage.backend import Store
from tests.support.backends import SharedData
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR

AVAILABLE, PENDING, SOLD = PetStatus.AVAILABLE, PetStatus.PENDING, PetStatus.SOLD


async def fill(store: Store, count: int) -> list[Pet]:
    """Animals 1 to `count`; every third is available, pending, sold in turn."""
    statuses = list(PetStatus)
    news = [NewPet(f"pet {n}", n, statuses[n % 3]) for n in range(1, count + 1)]
    return [(await store.pets.add(new, ACTOR)).pet for new in news]


async def walk(store: Store, query: PageQuery) -> list[Pet]:
    """Every animal of a walk, page by page."""
    found: list[Pet] = []
    after = 0
    while True:
        page = await store.pets.page(
            PageQuery(limit=query.limit, status=query.status, ids=query.ids, after_id=after)
        )
        found += page.pets
        if not page.has_more:
            return found
        assert len(page.pets) == query.limit
        after = page.pets[-1].id


class TestAdd:
    """An addition is durable and whole when it returns."""

    @pytest.mark.parametrize("category", [INT64_MIN, -1, 0, 1, INT64_MAX])
    async def test_any_int64_is_a_category(self, store: Store, category: int) -> None:
        """Kept digit for digit."""
        created = await store.pets.add(NewPet("Rex", category), ACTOR)
        assert await store.pets.get(created.pet.id) == Pet(1, "Rex", category, AVAILABLE)

    @pytest.mark.parametrize(
        "name", ["x", "🐕" * 255, " Rex ", "e\u0301", "é", "'; DROP TABLE pets; --", "%s {} $1 ?", "\u202e"]
    )
    async def test_a_name_is_kept_exactly(self, store: Store, name: str) -> None:
        """No trimming, no normalisation, nothing that is a command to anybody."""
        created = await store.pets.add(NewPet(name, 1), ACTOR)
        found = await store.pets.get(created.pet.id)
        assert found is not None
        assert found.name == name

    async def test_parallel_additions_are_all_kept_under_ids_of_their_own(self, store: Store) -> None:
        """A hundred at once: ids 1 to 100, each animal once."""
        created = await asyncio.gather(*(store.pets.add(NewPet(f"p{n}", n), ACTOR) for n in range(100)))
        assert sorted(one.pet.id for one in created) == list(range(1, 101))
        kept = await walk(store, PageQuery(limit=100))
        assert {pet.id: pet for pet in kept} == {one.pet.id: one.pet for one in created}

    async def test_an_identifier_is_never_used_again(self, backend: SharedData, store: Store) -> None:
        """I3: the newest animal is deleted by hand, also over a restart; the next id is a new one."""
        await fill(store, 3)
        backend.execute("DELETE FROM pets WHERE id = 3")
        assert (await store.pets.add(NewPet("next", 1), ACTOR)).pet.id == 4
        backend.execute("DELETE FROM pets")
        await store.close()
        assert (await backend.open().pets.add(NewPet("after", 1), ACTOR)).pet.id == 5

    async def test_two_stores_on_the_same_data_share_the_identifiers(
        self, backend: SharedData, store: Store
    ) -> None:
        """As the server and a command beside it do."""
        other = backend.open()
        both = [one.pets.add(NewPet("x", 1), ACTOR) for _ in range(20) for one in (store, other)]
        created = await asyncio.gather(*both)
        assert sorted(one.pet.id for one in created) == list(range(1, 41))


class TestGetAndPage:
    """Reading."""

    @pytest.mark.parametrize("limit", [1, 2])
    @pytest.mark.parametrize("status", [None, *PetStatus])
    async def test_a_walk_by_identifiers(self, store: Store, status: PetStatus | None, limit: int) -> None:
        """Unknown ones are simply absent; a status combines with them. The first animal of all is found, and
        so are neighbours of one status on two pages."""
        pets = await fill(store, 9)
        pets += [(await store.pets.add(NewPet("x", 1, status or SOLD), ACTOR)).pet for _ in range(3)]
        wanted = (1, 2, 3, 5, 8, 9, 10, 11, 12, 77, INT64_MAX)
        expected = [pet for pet in pets if pet.id in wanted and status in (None, pet.status)]
        assert await walk(store, PageQuery(limit=limit, status=status, ids=wanted)) == expected

    async def test_no_identifiers_is_a_filter_that_nothing_matches(self, store: Store) -> None:
        """Not the absence of a filter."""
        await fill(store, 2)
        assert (await store.pets.page(PageQuery(ids=()))).pets == []

    async def test_a_hundred_identifiers_and_a_hundred_rows(self, store: Store) -> None:
        """The largest page that can be asked for."""
        pets = await fill(store, 110)
        ids = tuple(range(11, 111))
        page = await store.pets.page(PageQuery(limit=100, ids=ids))
        assert (page.pets, page.has_more) == (pets[10:], False)


class TestStatus:
    """Changes of status, and who made them."""

    @pytest.mark.parametrize("before", list(PetStatus))
    @pytest.mark.parametrize("after", list(PetStatus))
    async def test_every_pair_follows_the_table(
        self, store: Store, before: PetStatus, after: PetStatus
    ) -> None:
        """A refused change leaves the animal and its history as they were."""
        await store.pets.add(NewPet("Rex", 1, before), ACTOR)
        if (before, after) == (SOLD, PENDING):
            with pytest.raises(Conflict):
                await store.pets.set_status(1, after, "staff")
            expected = before
        else:
            assert (await store.pets.set_status(1, after, "staff")).status is after
            expected = after
        found = await store.pets.get(1)
        assert found is not None
        assert found.status is expected
        assert len(await store.pets.history(1)) == (expected is not before)

    async def test_the_history_says_when_by_whom_from_and_to(self, store: Store, clock: ManualClock) -> None:
        """Oldest first; same to same is no change."""
        await fill(store, 2)
        start = clock.now_ms()
        await store.pets.set_status(1, SOLD, "anna")
        clock.advance(60)
        await store.pets.set_status(1, SOLD, "nobody")
        await store.pets.set_status(1, AVAILABLE, "ben")
        assert await store.pets.history(1) == [
            StatusChange(1, start, "anna", PENDING, SOLD),
            StatusChange(1, start + 60_000, "ben", SOLD, AVAILABLE),
        ]
        assert await store.pets.history(2) == []

    async def test_only_one_of_two_sales_at_once_is_a_change(self, store: Store) -> None:
        """Ten sell the same animal: one change in the history."""
        await fill(store, 1)
        await asyncio.gather(*(store.pets.set_status(1, SOLD, f"s{n}") for n in range(10)))
        assert len(await store.pets.history(1)) == 1


_steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(list(PetStatus)), st.just(0)),
        st.tuples(st.just("set"), st.sampled_from(list(PetStatus)), st.integers(1, 8)),
        st.tuples(st.just("page"), st.none() | st.sampled_from(list(PetStatus)), st.integers(0, 8)),
    ),
    max_size=25,
)


class TestModel:
    """Any list of operations against a dictionary (the beginning of I9)."""

    @given(steps=_steps)
    @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    async def test_the_store_answers_as_a_dictionary_would(
        self, backend: SharedData, steps: list[tuple[str, PetStatus | None, int]]
    ) -> None:
        """Additions, changes of status and pages in any order."""
        store = backend.open()
        first = await self._next_id(store)
        model: dict[int, PetStatus] = {}
        for what, status, number in steps:
            if what == "add" and status is not None:
                created = await store.pets.add(NewPet("x", 1, status), ACTOR)
                assert created.pet.id == first + len(model)
                model[created.pet.id] = status
            elif what == "set" and status is not None:
                await self._set(store, model, first + number - 1, status)
            else:
                page = await store.pets.page(
                    PageQuery(limit=3, status=status, ids=None, after_id=first + number - 1)
                )
                ids = [n for n, kept in model.items() if n >= first + number and status in (None, kept)]
                assert [pet.id for pet in page.pets] == ids[:3]
                assert page.has_more == (len(ids) > 3)
        await store.close()

    async def _next_id(self, store: Store) -> int:
        return (await store.pets.add(NewPet("mark", 1, SOLD), ACTOR)).pet.id + 1

    async def _set(self, store: Store, model: dict[int, PetStatus], pet_id: int, status: PetStatus) -> None:
        before = model.get(pet_id)
        if before is None:
            with pytest.raises(NotFound):
                await store.pets.set_status(pet_id, status, "staff")
        elif (before, status) == (SOLD, PENDING):
            with pytest.raises(Conflict):
                await store.pets.set_status(pet_id, status, "staff")
        else:
            model[pet_id] = (await store.pets.set_status(pet_id, status, "staff")).status
