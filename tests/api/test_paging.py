"""Walks over GET /pets by `Link` while animals come, change and go; cursors of others (I4)."""

from __future__ import annotations

import random
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.service import Answer, Shop, outsider


def fill(shop: Shop, count: int) -> None:
    """Animals straight into the file; the status goes round."""
    with outsider(shop.path) as connection, connection:
        connection.executemany(
            "INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)",
            ((f"n{n}", n, ("available", "pending", "sold")[n % 3]) for n in range(1, count + 1)),
        )


async def walk(shop: Shop, target: str, between: object = None, *, first: str = "") -> list[list[int]]:
    """The identifiers of every page, following rel=next until it is absent; each has this `first`."""
    pages = []
    following: str | None = target
    while following is not None:
        answer = await shop.ask("GET", following)
        assert answer.status == 200
        assert answer.links["first"] == (first := first or answer.links["first"])
        pages.append([pet["id"] for pet in answer.json()])
        following = answer.links.get("next")
        if callable(between):
            await between(len(pages))
    return pages


def flat(pages: list[list[int]]) -> list[int]:
    return [pet_id for page in pages for pet_id in page]


class TestWalk200:
    """What a walk yields."""

    async def test_a_walk_has_every_animal_exactly_once(self, shop: Shop) -> None:
        """Every animal exactly once, ascending, in pages of the asked size, whatever the size."""
        fill(shop, 50)
        for limit in (1, 2, 7, 49, 50, 51, 100):
            pages = await walk(shop, f"/v1/pets?limit={limit}")
            assert flat(pages) == list(range(1, 51))
            assert all(len(page) == limit for page in pages[:-1])
            assert len(pages) == max(1, -(-50 // limit))

    async def test_first_is_always_there_and_next_only_when_there_is_more(self, shop: Shop) -> None:
        """An exact multiple of the page has no empty last page."""
        fill(shop, 4)
        first = await shop.ask("GET", "/v1/pets?limit=2&status=available&id=3")
        assert first.links == {"first": "/v1/pets?limit=2&status=available&id=3"}
        page = await shop.ask("GET", "/v1/pets?limit=2")
        assert list(page.links) == ["next", "first"]
        last = await shop.ask("GET", page.links["next"])
        assert [pet["id"] for pet in last.json()] == [3, 4]
        assert last.links == {"first": "/v1/pets?limit=2"}

    async def test_next_keeps_every_filter(self, shop: Shop) -> None:
        """limit, status, id, categoryId and order as they were, and an opaque cursor of 16 characters."""
        fill(shop, 12)
        with outsider(shop.path) as connection:
            connection.execute("UPDATE pets SET category_id = -5")
        filters = "status=sold&limit=1&id=8&id=2&categoryId=-5&order=-id"
        answer = await shop.ask("GET", f"/v1/pets?{filters}")
        assert [pet["id"] for pet in answer.json()] == [8]
        query = parse_qs(urlsplit(answer.links["next"]).query)
        cursor = query.pop("cursor")
        kept = {"limit": ["1"], "status": ["sold"], "id": ["2", "8"], "categoryId": ["-5"], "order": ["-id"]}
        assert query == kept
        assert len(cursor[0]) == 16

    @pytest.mark.parametrize("filters", ["", "&status=sold", "&categoryId=1", "&categoryId=1&status=sold"])
    async def test_the_newest_first(self, shop: Shop, filters: str) -> None:
        """Each animal that was there before the first page once, descending; those added meanwhile never."""
        fill(shop, 50)
        with outsider(shop.path) as connection:
            connection.execute("UPDATE pets SET category_id = id / 26")

        async def add(page: int) -> None:
            await shop.post({"name": "new", "categoryId": 1, "status": "sold"})

        for limit in (25, 26, 7, 100):
            expected = [
                pet_id
                for pet_id, _, category, status in reversed(shop.pets())
                if ("status" not in filters or status == "sold")
                and ("category" not in filters or category == 1)
            ]
            assert flat(await walk(shop, f"/v1/pets?order=-id&limit={limit}{filters}", add)) == expected

    @pytest.mark.parametrize("order", ["", "&order=-id"])
    @pytest.mark.parametrize("status", ["", "&status=sold"])
    async def test_by_the_last_identifier_of_each_page(self, shop: Shop, order: str, status: str) -> None:
        """`after` gives each animal once to a client that sees bodies only: until a page is short. `Link` is
        as without it: `next` is the same page as by `after`, and `first` the list's."""
        fill(shop, 250)
        pages: list[list[int]] = []
        whole, place = f"/v1/pets?limit=50{status}{order}", ""
        following: Answer | None = None
        while not pages or len(pages[-1]) == 50:
            page = await shop.ask("GET", whole + place)
            assert page.links["first"] == whole
            assert following is None or page.body == following.body
            pages.append([pet["id"] for pet in page.json()])
            place = f"&after={pages[-1][-1]}" if pages[-1] else ""
            following = await shop.ask("GET", page.links["next"]) if "next" in page.links else None
        expected = [number for number in range(1, 251) if not status or number % 3 == 2]
        assert flat(pages) == (expected[::-1] if order else expected)

    async def test_after_the_end_and_at_the_beginning(self, shop: Shop) -> None:
        """An empty page without `next` after the last animal, which ends a walk; an identifier that no
        animal has any more is a place too; and the cursor of the contract's example is the beginning, so that
        it goes with `after`."""
        fill(shop, 5)
        await shop.ask("DELETE", "/v1/pets/3")
        for query, ids in (
            ("after=5", []), (f"after={2**63 - 1}", []), ("after=1&order=-id", []), ("after=3", [4, 5]),
            ("order=-id&after=3", [2, 1]), ("after=9&order=-id&id=5&id=2", [5, 2]), ("%61fter=4", [5]),
            ("cursor=AAAAAAAAAAAAAAAA&after=4", [5]),
        ):  # fmt: skip
            answer = await shop.ask("GET", f"/v1/pets?{query}")
            assert [pet["id"] for pet in answer.json()] == ids, query
            assert "next" not in answer.links

    async def test_while_animals_are_removed(self, shop: Shop) -> None:
        """The animal at the cursor may be gone: the walk goes on after its identifier."""
        fill(shop, 10)

        async def remove(page: int) -> None:
            await shop.ask("DELETE", f"/v1/pets/{2 * page}")

        assert flat(await walk(shop, "/v1/pets?limit=2", remove)) == list(range(1, 11))

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("status", ["", "&status=available"])
    async def test_while_anything_happens(self, shop: Shop, status: str, seed: int) -> None:
        """Additions, removals and changes of status between pages: what is in the filter from the first page
        to the end of the walk is in it once; nothing is in it twice; each page is as its moment is."""
        rng = random.Random(seed)
        fill(shop, 30)

        def matching() -> set[int]:
            return {row[0] for row in shop.pets() if row[3] in status or not status}

        steady = matching()
        seen: list[int] = []

        async def change(_page: int) -> None:
            nonlocal steady
            for _ in range(rng.randint(0, 6)):
                pet_id = rng.randint(1, 34)
                if rng.random() < 0.2:
                    await shop.post({"name": "new", "categoryId": 1})
                elif rng.random() < 0.3:
                    await shop.ask("DELETE", f"/v1/pets/{pet_id}")
                else:
                    await shop.patch(pet_id, {"status": rng.choice(["available", "pending", "sold"])})
                steady &= matching()

        following: str | None = f"/v1/pets?limit=3{status}"
        while following:
            answer = await shop.ask("GET", following)
            page = [pet["id"] for pet in answer.json()]
            assert set(page) <= matching()
            seen += page
            following = answer.links.get("next")
            await change(len(seen))
        assert seen == sorted(set(seen))
        assert steady <= set(seen)
