"""The page of animals: what it finds, how it goes on, and what it says to what it can't read."""

from __future__ import annotations

import re

import pytest

from petstore.core.pets import SCANNED_MAX, NewPet, PetStatus
from tests.support.backends import execute_in_file
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR
from tests.support.service import Shop

AVAILABLE, SOLD = PetStatus.AVAILABLE, PetStatus.SOLD
PETS = [("Rex", 1, AVAILABLE), ("rexa", 2, SOLD), ("Mia", 1, SOLD), ("2 Be", 3, AVAILABLE), ("R%x", 1, SOLD)]

QUERIES = [
    ("", ["R%x", "2 Be", "Mia", "rexa", "Rex"]),
    ("?order=oldest", ["Rex", "rexa", "Mia", "2 Be", "R%x"]),
    ("?status=sold", ["R%x", "Mia", "rexa"]),
    ("?category=1&status=sold", ["R%x", "Mia"]),
    ("?category=77", []),
    ("?q=re", ["Rex", "rexa"]),
    ("?q=REX", ["Rex", "rexa"]),
    ("?q=r%25", ["R%x"]),
    ("?q=%20", ["R%x", "2 Be", "Mia", "rexa", "Rex"]),
    ("?q=re&category=2&status=sold", ["rexa"]),
    ("?q=2", ["rexa", "2 Be"]),
    ("?q=2&status=available", ["2 Be"]),
    ("?q=02", []),
    ("?q=9223372036854775808", []),
    ("?q=nobody", []),
]


@pytest.fixture
async def filled(shop: Shop) -> Shop:
    """Five animals; categories 1 and 2 have names."""
    for new in PETS:
        await shop.store.pets.add(NewPet(*new), ACTOR)
    await shop.store.categories.name(1, "Dogs", ACTOR)
    await shop.store.categories.name(2, "Cats", ACTOR)
    return shop


def names(shown: Shown) -> list[str]:
    """The animals of the page, in its order."""
    return re.findall(r'/pets/[0-9]+"><bdi>([^<]*)</bdi>', shown.body.decode())


class TestFinding:
    """Which animals, in which order."""

    async def test_by_number_name_category_and_status(self, filled: Shop, viewer: Visitor) -> None:
        """All combine; digits are a number, whose animal comes first, and the beginning of a name."""
        for query, found in QUERIES:
            shown = await viewer.get(f"pets{query}")
            assert (shown.status, names(shown)) == (200, found), query
            assert ("No animals match." in shown.text) is (not found)

    async def test_a_row_tells_the_category_by_its_name(self, filled: Shop, viewer: Visitor) -> None:
        """One without a name by its number. The animal is linked."""
        shown = await viewer.get("pets")
        assert "4 2 Be 3 available 3 Mia Dogs sold 2 rexa Cats sold 1 Rex Dogs available" in shown.text
        assert shown.links["Mia"].endswith("console/pets/3")


class TestGoingOn:
    """Fifty animals are a page."""

    async def test_every_animal_is_on_one_page(self, shop: Shop, viewer: Visitor) -> None:
        """The last page has no next one; the others but the first lead to the first."""
        made = [f"P{number:03d}" for number in range(120)]
        for name in made:
            await shop.store.pets.add(NewPet(name, 1), ACTOR)
        for query in ("order=oldest", "q=p", "q=p&status=available"):
            first = shown = await viewer.get(f"pets?{query}")
            assert "First page" not in first.links
            found = names(shown)
            while "Next page" in shown.links:
                shown = await viewer.get(shown.links["Next page"].partition("console/")[2])
                assert names(await viewer.get(shown.links["First page"].partition("console/")[2])) == names(
                    first
                )
                found += names(shown)
            assert found == made

    async def test_a_search_that_finds_little_stops_and_goes_on(self, shop: Shop, viewer: Visitor) -> None:
        """It says as far as which name it has searched."""
        values = ", ".join(f"('rex {n:04d}', 1, 'available')" for n in range(SCANNED_MAX))
        execute_in_file(shop.path, f"INSERT INTO pets (name, category_id, status) VALUES {values}")
        await shop.store.pets.add(NewPet("Rey", 1, SOLD), ACTOR)
        shown = await viewer.get("pets?q=re&status=sold")
        assert names(shown) == []
        assert "No animals match so far." in shown.text
        assert "Searched as far as rex 0999." in shown.text
        further = await viewer.get(shown.links["Look further"].partition("console/")[2])
        assert names(further) == ["Rey"]
        assert "Look further" not in further.links


class TestLive:
    """What htmx asks for while somebody types."""

    async def test_it_gets_the_rows_alone(self, filled: Shop, viewer: Visitor) -> None:
        """The same rows as the whole page has."""
        asked = [("hx-request", "true")]
        shown = await viewer.get("pets?q=re", headers=asked)
        assert names(shown) == ["Rex", "rexa"]
        assert shown.body.startswith(b'<div id="rows">')
        assert shown.body.strip() in (await viewer.get("pets?q=re")).body

    async def test_the_way_back_leads_to_a_whole_page(self, viewer: Visitor) -> None:
        """After a search and a jump within the page htmx asks again, and replaces the page by the answer."""
        asked = [("hx-request", "true"), ("hx-history-restore-request", "true")]
        shown = await viewer.get("pets?q=re", headers=asked)
        assert {"Overview", "Animals"} <= set(shown.links)
