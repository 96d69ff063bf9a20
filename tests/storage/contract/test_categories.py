"""What every store of categories' names does."""

from __future__ import annotations

import asyncio

import pytest

from petstore.core.categories import CATEGORIES_MAX, Category, CategoryNamedMeanwhile
from petstore.core.errors import CategoryNotFound, Conflict, Invalid
from petstore.core.values import INT64_MAX, INT64_MIN
from petstore.storage.store import Store
from tests.support.backends import SharedData
from tests.support.journal import ACTOR

ENTRIES = (
    "SELECT actor, subject, subject_id, action, before, after FROM journal WHERE subject = 'category'"
    " ORDER BY id"
)


async def test_any_int64_can_have_a_name(store: Store) -> None:
    """They are listed by id, and no other is. A name is kept exactly."""
    names = {INT64_MAX: "x", 0: "🐕" * 100, INT64_MIN: " Big Dogs ", 7: "'; DROP TABLE categories; --"}
    for category, name in names.items():
        assert await store.categories.name(category, name, ACTOR) == Category(category, name)
    assert await store.categories.all() == [Category(*each) for each in sorted(names.items())]


async def test_what_is_no_name_is_refused(store: Store) -> None:
    """The rule of animals' names, but for 100 characters; nothing is kept."""
    for name in ("", " ", "x" * 101, "a\x00", "a\nb", "\ud800", "a\x9b"):
        with pytest.raises(Invalid):
            await store.categories.name(1, name, ACTOR)
    assert await store.categories.all() == []


async def test_each_change_has_its_entry(backend: SharedData, store: Store) -> None:
    """The journal has who changed which name to what. The same name again changes nothing."""
    await store.categories.name(7, "Dogs", "ann")
    await store.categories.name(7, "Dogs", "nobody")
    await store.categories.name(7, "Big dogs", "ben")
    assert await store.categories.unname(7, "cem") == Category(7, "Big dogs")
    assert await store.categories.all() == []
    assert backend.execute(ENTRIES) == [
        ("ann", "category", 7, "named", None, '{"name":"Dogs"}'),
        ("ben", "category", 7, "named", '{"name":"Dogs"}', '{"name":"Big dogs"}'),
        ("cem", "category", 7, "named", '{"name":"Big dogs"}', None),
    ]


async def test_only_the_expected_name_is_replaced(store: Store) -> None:
    """Another one is told and stays; the wanted one may be there already."""
    await store.categories.name(1, "Dogs", ACTOR)
    for expected in ("Cats", None):
        with pytest.raises(CategoryNamedMeanwhile, match="called Dogs now") as told:
            await store.categories.name(1, "Hounds", ACTOR, expected=expected)
        assert told.value.current == Category(1, "Dogs")
        await store.categories.name(1, "Dogs", ACTOR, expected=expected)
    with pytest.raises(CategoryNamedMeanwhile):
        await store.categories.unname(1, ACTOR, expected="Cats")
    await store.categories.name(1, "Hounds", ACTOR, expected="Dogs")
    assert await store.categories.unname(1, ACTOR, expected="Hounds") == Category(1, "Hounds")
    with pytest.raises(CategoryNotFound, match="Category 1 has no name"):
        await store.categories.name(1, "Dogs", ACTOR, expected="Hounds")
    with pytest.raises(CategoryNotFound):
        await store.categories.unname(1, ACTOR)
    await store.categories.name(1, "Dogs", ACTOR, expected=None)


async def test_no_two_categories_have_one_name(backend: SharedData, store: Store) -> None:
    """Whatever its capitals, and however its accents are encoded; also when two come at once. What an
    earlier release wrote stays."""
    await store.categories.name(1, "Cats", ACTOR)
    with pytest.raises(Conflict, match="Category 1 is called Cats already"):
        await store.categories.name(2, " cATS", ACTOR)
    await store.categories.name(6, "V\u00f6gel", ACTOR)
    with pytest.raises(Conflict, match="Category 6 is called"):
        await store.categories.name(2, "Vo\u0308gel", ACTOR)
    both = [backend.open().categories.name(number, "Dogs", ACTOR) for number in (3, 4)]
    outcomes = await asyncio.gather(*both, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes].count(Conflict) == 1
    backend.execute("INSERT INTO categories VALUES (5, 'Cats')")
    with pytest.raises(Conflict):
        await store.categories.name(1, "cats", ACTOR)
    await store.categories.name(5, "Big cats", ACTOR)
    await store.categories.name(1, "CATS", ACTOR)


async def test_at_most_a_thousand_have_names(backend: SharedData, store: Store) -> None:
    """The list is one answer. Then there are new names for named ones only, until one is taken away;
    also when two come at once."""
    backend.execute(
        "INSERT INTO categories WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
        f" WHERE i < {CATEGORIES_MAX - 1}) SELECT i, 'c' || i FROM n"
    )
    both = [backend.open().categories.name(number, f"x{number}", ACTOR) for number in (-1, -2)]
    outcomes = await asyncio.gather(*both, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes].count(Conflict) == 1
    with pytest.raises(Conflict, match="1,000"):
        await store.categories.name(-3, "x", ACTOR)
    await store.categories.name(5, "other", ACTOR)
    await store.categories.unname(5, ACTOR)
    await store.categories.name(-3, "x", ACTOR)
    assert len(await store.categories.all()) == CATEGORIES_MAX
