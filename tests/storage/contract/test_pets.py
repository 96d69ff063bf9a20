"""What every store of animals does: add, get, page, keep the history. Changes: test_pet_changes.py."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import asdict, replace

from petstore.core.errors import Conflict, NotFound
from petstore.core.pets import NewPet, Pet, PetChange, PetPage, PetQuery, PetStatus, PublicPet
from petstore.core.values import INT64_MAX, INT64_MIN
from petstore.storage.store import Store
from tests.support.backends import SharedData, through_pgbouncer_too
from tests.support.journal import ACTOR

AVAILABLE, PENDING, SOLD = PetStatus.AVAILABLE, PetStatus.PENDING, PetStatus.SOLD


async def fill(store: Store, count: int) -> list[Pet]:
    """Animals 1 to `count`; every third is available, pending, sold in turn."""
    statuses = list(PetStatus)
    news = [NewPet(f"pet {n}", n, statuses[n % 3]) for n in range(1, count + 1)]
    return [(await store.pets.add(new, ACTOR)).pet for new in news]


async def read(store: Store, query: PetQuery) -> PetPage:
    """A page for staff. One for clients has the same animals, with the members that they see."""
    page, answer = await store.pets.page(query), store.pets.public_page(query)
    public = answer if isinstance(answer, PetPage) else await answer
    names = PublicPet.__struct_fields__
    seen = [PublicPet(**{name: getattr(pet, name) for name in names}) for pet in page.pets]
    assert (public.pets, public.has_more) == (seen, page.has_more)
    return page


async def walk(store: Store, query: PetQuery) -> list[Pet]:
    """Every animal of a walk, page by page."""
    found: list[Pet] = []
    while True:
        page = await read(store, query)
        found += page.pets
        if not page.has_more:
            return found
        assert len(page.pets) == query.limit
        query = replace(query, after_id=page.pets[-1].id)


class TestAdd:
    """An addition is durable and whole when it returns."""

    async def test_any_int64_is_a_category_kept_digit_for_digit(self, store: Store) -> None:
        """A category is whatever number the customer has given."""
        for pet_id, category in enumerate((INT64_MIN, -1, 0, 1, INT64_MAX), 1):
            await store.pets.add(NewPet("Rex", category), ACTOR)
            assert await store.pets.get_or_none(pet_id) == Pet(pet_id, "Rex", category, AVAILABLE)

    async def test_a_name_is_kept_exactly(self, store: Store) -> None:
        """No trimming, no normalisation, nothing that is a command to anybody."""
        for pet_id, name in enumerate(
            ("x", "🐕" * 255, " Rex ", "e\u0301", "é", "'; DROP TABLE pets; --", "%s {} $1 ?", "\u202e"), 1
        ):
            await store.pets.add(NewPet(name, 1), ACTOR)
            assert await store.pets.get_or_none(pet_id) == Pet(pet_id, name, 1, AVAILABLE)

    async def test_parallel_additions_are_all_kept_under_ids_of_their_own(
        self, backend: SharedData, store: Store
    ) -> None:
        """A hundred at once, as by the server and a command beside it: ids 1 to 100, each animal once."""
        stores = store, backend.open()
        created = await asyncio.gather(
            *(stores[n % 2].pets.add(NewPet(f"p{n}", n), ACTOR) for n in range(100))
        )
        assert sorted(one.pet.id for one in created) == list(range(1, 101))
        kept = await walk(store, PetQuery(limit=100))
        assert {pet.id: pet for pet in kept} == {one.pet.id: one.pet for one in created}

    async def test_an_identifier_is_never_used_again(self, backend: SharedData, store: Store) -> None:
        """I3: the newest animal is deleted by hand, also over a restart; the next id is a new one."""
        await fill(store, 3)
        backend.execute("DELETE FROM pets WHERE id = 3")
        assert (await store.pets.add(NewPet("next", 1), ACTOR)).pet.id == 4
        backend.execute("DELETE FROM pets")
        await store.close()
        assert (await backend.open().pets.add(NewPet("after", 1), ACTOR)).pet.id == 5


class TestGetAndPage:
    """Reading."""

    @pytest.mark.parametrize("status", [None, *PetStatus])
    async def test_a_walk_by_identifiers(self, store: Store, status: PetStatus | None) -> None:
        """Unknown ones are simply absent; a status combines with them. The first animal of all is found, and
        so are neighbours of one status on two pages."""
        pets = await fill(store, 9)
        pets += [(await store.pets.add(NewPet("x", 1, status or SOLD), ACTOR)).pet for _ in range(3)]
        wanted = (1, 2, 3, 5, 8, 9, 10, 11, 12, 77, INT64_MAX)
        expected = [pet for pet in pets if pet.id in wanted and status in (None, pet.status)]
        for limit in (1, 2):
            assert await walk(store, PetQuery(limit=limit, status=status, ids=wanted)) == expected

    async def test_a_walk_by_category(self, store: Store) -> None:
        """Every int64 is one; it combines with the other filters, in both orders, in pages of any size. No
        identifiers are a filter that nothing matches, not the absence of one."""
        pets = []
        for number in range(60):
            category = (INT64_MIN, -1, 0, 0, 0, INT64_MAX)[number % 6]
            new = NewPet("x", category, list(PetStatus)[number // 6 % 3])
            pets.append((await store.pets.add(new, ACTOR)).pet)
        for asked, status, ids, newest_first in itertools.product(
            (None, INT64_MIN, -1, 0, 7, INT64_MAX),
            (None, *PetStatus),
            (None, (), (1, 4, 5, 8, 9, 30, 31, 60, 77)),
            (False, True),
        ):
            expected = [
                pet
                for pet in (reversed(pets) if newest_first else pets)
                if asked in (None, pet.category_id) and status in (None, pet.status)
                if ids is None or pet.id in ids
            ]
            for limit in (4, 100):
                query = PetQuery(limit, status, ids, 0, asked, newest_first)
                assert await walk(store, query) == expected, query
                assert await store.pets.count(query) == len(expected), query

    async def test_a_count_is_bounded(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        """One more than the bound stands for all above, in one status or in several."""
        monkeypatch.setattr("petstore.transactions.query.COUNTED_MAX", 3)
        for number in range(7):
            await store.pets.add(NewPet("x", number % 2, list(PetStatus)[number // 2 % 3]), ACTOR)
        asked = (PetQuery(), PetQuery(category_id=0), PetQuery(category_id=1), PetQuery(status=SOLD))
        assert [await store.pets.count(query) for query in asked] == [4, 4, 3, 2]

    @through_pgbouncer_too
    async def test_many_pages_at_once(self, store: Store) -> None:
        """Each query gets its own page: the first, the last, an empty or a repeated one, in any order."""
        pets = await fill(store, 80)
        queries = [
            PetQuery(limit, status, None, after)
            for limit, status in ((2, None), (2, SOLD), (3, SOLD), (100, None))
            for after in (*range(80, -1, -1), 7, 7, 1_000, INT64_MAX)
        ]
        pages = await asyncio.gather(*(read(store, query) for query in queries))
        for query, page in zip(queries, pages, strict=True):
            left = [pet for pet in pets if pet.id > query.after_id and query.status in (None, pet.status)]
            assert (page.pets, page.has_more) == (left[: query.limit], len(left) > query.limit), query


_statuses = st.sampled_from(list(PetStatus))
_changes = st.builds(
    PetChange,
    name=st.sampled_from([UNSET, "x", "y"]),
    category_id=st.sampled_from([UNSET, 1, 2]),
    status=st.sampled_from([UNSET, *PetStatus]),
)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), _statuses, st.integers(1, 2)),
        st.tuples(st.just("change"), _changes, st.integers(1, 8)),
        st.tuples(st.just("remove"), st.none(), st.integers(1, 8)),
        st.tuples(
            st.just("page"),
            st.tuples(st.none() | _statuses, st.sampled_from([None, 1, 2, 3]), st.booleans()),
            st.integers(0, 8),
        ),
    ),
    max_size=25,
)


class TestModel:
    """Any list of operations against a dictionary (the beginning of I9)."""

    @through_pgbouncer_too
    @given(steps=_steps)
    @settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    async def test_the_store_answers_as_a_dictionary_would(
        self, backend: SharedData, steps: list[tuple[str, Any, int]]
    ) -> None:
        """Additions, changes, removals and pages, by every filter and in both orders, in any order."""
        store = backend.open()
        first = next_id = await self._next_id(store)
        backend.execute("DELETE FROM pets")  # those of other examples too
        model: dict[int, Pet] = {}
        for what, value, number in steps:
            pet_id = first + number - 1
            if what == "add":
                created = await store.pets.add(NewPet("x", number, value), ACTOR)
                assert created.pet == Pet(next_id, "x", number, value)
                model[next_id] = created.pet
                next_id += 1
            elif what == "change":
                await self._change(store, model, pet_id, value)
            elif what == "remove" and pet_id in model:
                assert await store.pets.remove(pet_id, ACTOR) == model.pop(pet_id)
            elif what == "remove":
                with pytest.raises(NotFound):
                    await store.pets.remove(pet_id, ACTOR)
            else:
                status, category, newest_first = value
                query = PetQuery(3, status, None, pet_id, category, newest_first)
                page = await store.pets.page(query)
                pets = [
                    pet
                    for pet in sorted(model.values(), key=lambda pet: pet.id, reverse=newest_first)
                    if (pet.id < pet_id if newest_first else pet.id > pet_id)
                    and status in (None, pet.status)
                    and category in (None, pet.category_id)
                ]
                assert page.pets == pets[:3]
                assert page.has_more == (len(pets) > 3)
        await store.close()

    async def _next_id(self, store: Store) -> int:
        return (await store.pets.add(NewPet("mark", 1, SOLD), ACTOR)).pet.id + 1

    async def _change(self, store: Store, model: dict[int, Pet], pet_id: int, change: PetChange) -> None:
        before = model.get(pet_id)
        if before is None:
            with pytest.raises(NotFound):
                await store.pets.change(pet_id, change, ACTOR)
        elif (before.status, change.status) == (SOLD, PENDING):
            with pytest.raises(Conflict):
                await store.pets.change(pet_id, change, ACTOR)
        else:
            sent = {name: value for name, value in asdict(change).items() if value is not UNSET}
            model[pet_id] = replace(before, **sent)
            assert await store.pets.change(pet_id, change, ACTOR) == model[pet_id]
