"""What every store does with the tags of If-Match: they are compared in the transaction of the change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any

import msgspec
import pytest

from petstore.core.errors import PreconditionFailed
from petstore.core.orders import members_of
from petstore.core.pets import NewPet, PetChange, shown_pet
from petstore.core.preconditions import Tags, tag_of
from petstore.storage.store import Store
from tests.storage.contract.test_orders import open_accounts, place

WRITERS, ROUNDS = 64, 3


def tags(resource: object) -> Tags:
    return frozenset({tag_of(msgspec.json.encode(resource))})


async def winner(writes: Iterable[Awaitable[Any]]) -> Any:
    """What the one writer that wins gets; every other one is refused."""
    outcomes = await asyncio.gather(*writes, return_exceptions=True)
    won = [outcome for outcome in outcomes if not isinstance(outcome, PreconditionFailed)]
    assert len(won) == 1, won
    return won[0]


async def test_one_of_many_writers_of_an_animal_wins_each_round(store: Store) -> None:
    """Each sends another name with the tag that all have read; no change is lost."""
    pet = (await store.pets.add(NewPet("Rex", 1), "test")).pet
    for round_ in range(ROUNDS):
        match = tags(shown_pet(pet))
        changes = [PetChange(name=f"{round_}.{number}") for number in range(WRITERS)]
        pet = await winner(store.pets.change(1, change, "test", match=match) for change in changes)
        assert await store.pets.get_or_none(1) == pet


async def test_one_of_many_writers_of_an_order_wins_each_round(store: Store) -> None:
    """Each gives another ship date."""
    await open_accounts(store, 1)
    await store.pets.add(NewPet("Rex", 1), "test")
    order = await place(store)
    for round_ in range(1, ROUNDS + 1):
        match = tags(members_of(order))
        dates = range(round_ * WRITERS, (round_ + 1) * WRITERS)
        order = await winner(store.orders.change(1, "test", ship_date_ms=date, match=match) for date in dates)
        assert await store.orders.get(1) == order


async def test_a_refusal_leaves_no_trace(store: Store) -> None:
    """A refusal changes neither animal nor order, and a change that would change nothing is refused too."""
    await open_accounts(store, 1)
    pet = (await store.pets.add(NewPet("Rex", 1), "test")).pet
    order = await place(store)
    known = await store.pets.get_or_none(1)
    for refused in (
        store.pets.change(1, PetChange(name="Rex"), "test", match=tags(shown_pet(pet))),
        store.pets.remove(1, "test", match=tags(shown_pet(pet))),
        store.orders.change(1, "test", ship_date_ms=1, match=frozenset({b'"a"'})),
    ):
        with pytest.raises(PreconditionFailed):
            await refused
    assert await store.pets.get_or_none(1) == known
    assert await store.orders.get(1) == order
