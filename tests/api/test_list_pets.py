"""GET /pets: the array and its filters. Walks are test_paging.py's."""

from __future__ import annotations

from petstore.core.pets import NewPet
from tests.support.cases import every_case
from tests.support.journal import ACTOR
from tests.support.service import Shop


async def stock(shop: Shop, count: int) -> None:
    """Animals 1 to `count`: available, pending, sold in turn."""
    for number in range(count):
        status = ("available", "pending", "sold")[number % 3]
        added = await shop.post({"name": f"n{number + 1}", "categoryId": number, "status": status})
        assert added.status == 201


async def ids(shop: Shop, query: str) -> list[int]:
    answer = await shop.ask("GET", f"/v1/pets?{query}")
    assert answer.status == 200
    return [pet["id"] for pet in answer.json()]


class TestListPets200:
    """What a list holds."""

    async def test_an_empty_store_is_an_empty_array(self, shop: Shop) -> None:
        """No animals: `[]`, with a first page to refer to and no next."""
        answer = await shop.ask("GET", "/v1/pets")
        assert (answer.status, answer.body) == (200, b"[]")
        assert answer.links == {"first": "/v1/pets?limit=20"}

    async def test_an_animal_with_a_name_that_is_refused_today_is_shown(self, shop: Shop) -> None:
        """Control characters above U+007F were allowed once: what is stored comes back as it is."""
        await shop.store.pets.add(NewPet("a\x9b31m", 1), ACTOR)
        assert (await shop.ask("GET", "/v1/pets")).json()[0]["name"] == "a\x9b31m"

    async def test_twenty_by_default_in_ascending_order(self, shop: Shop) -> None:
        """A page holds the 20 lowest identifiers, ascending."""
        await stock(shop, 22)
        assert await ids(shop, "") == list(range(1, 21))

    async def test_a_status_filter_lists_only_animals_of_that_status(self, shop: Shop) -> None:
        """Only animals with that status, in ascending order."""
        await stock(shop, 7)
        for status, expected in (("available", [1, 4, 7]), ("pending", [2, 5]), ("sold", [3, 6])):
            assert await ids(shop, f"status={status}") == expected

    async def test_id_reads_one_animal(self, shop: Shop) -> None:
        """The replacement of the deprecated operation: a bare array of one whole animal."""
        await stock(shop, 3)
        answer = await shop.ask("GET", "/v1/pets?id=2")
        assert answer.json() == [{"id": 2, "name": "n2", "categoryId": 1, "status": "pending"}]
        assert answer.links == {"first": "/v1/pets?limit=20&id=2"}

    @every_case(
        "query",
        ["id=7&id=2&id=2&id=9", "id=7,2,2,9", "id=9%2C7&id=2", "id=2,7&id=9,2", "id[]=2&id%5B%5D=7&id=9"],
    )
    async def test_id_reads_a_batch_in_ascending_order(self, shop: Shop, query: str) -> None:
        """Each animal once however often it was named. Commas and brackets are repetitions, also mixed with
        them, `id[]` as axios writes it; `Link` and its cursor have the repeated form."""
        await stock(shop, 9)
        assert await ids(shop, query) == [2, 7, 9]
        page = await shop.ask("GET", f"/v1/pets?limit=2&{query}")
        assert page.links == (await shop.ask("GET", "/v1/pets?limit=2&id=2&id=7&id=9")).links
        assert page.links["first"] == "/v1/pets?limit=2&id=2&id=7&id=9"
        cursor = page.links["next"].partition("cursor=")[2]
        assert await ids(shop, f"{query}&cursor={cursor}") == [9]

    async def test_a_hundred_identifiers_are_taken(self, shop: Shop) -> None:
        """A list takes 100 values of `id`, and `limit` bounds its page as ever."""
        await stock(shop, 101)
        query = "&".join(f"id={number}" for number in range(2, 102))
        assert await ids(shop, f"limit=100&{query}") == list(range(2, 102))
        assert await ids(shop, query) == list(range(2, 22))

    async def test_a_category_filter_lists_only_animals_of_that_category(self, shop: Shop) -> None:
        """Only animals of that category; any int64, once, alone and with the other filters."""
        await stock(shop, 4)
        for category in (2, 2, -(2**63), 2**63 - 1, 0):
            await shop.post({"name": "x", "categoryId": category})
        assert await ids(shop, "categoryId=2") == [3, 5, 6]
        assert await ids(shop, f"categoryId={-(2**63)}") == [7]
        assert await ids(shop, f"categoryId={2**63 - 1}") == [8]
        assert await ids(shop, "categoryId=0") == [1, 9]
        assert await ids(shop, "categoryId=-1") == []
        assert await ids(shop, "categoryId=2&status=available") == [5, 6]
        assert await ids(shop, "categoryId=2&id=6&id=7&status=available") == [6]

    async def test_the_newest_first(self, shop: Shop) -> None:
        """`order=-id` turns a list around, with every filter; `order=id` is the default."""
        await stock(shop, 9)
        assert await ids(shop, "order=-id&limit=3") == [9, 8, 7]
        assert await ids(shop, "order=-id&status=sold") == [9, 6, 3]
        assert await ids(shop, "order=-id&id=2&id=7&id=4") == [7, 4, 2]
        assert await ids(shop, "order=-id&categoryId=3") == [4]
        answer = await shop.ask("GET", "/v1/pets?order=id")
        assert answer.links == {"first": "/v1/pets?limit=20"}

    @every_case("query", ["limit=%32", "l%69mit=2", "limit=2&", "&&&limit=2", "&limit=%32&&"])
    async def test_percent_encoding_is_transparent(self, shop: Shop, query: str) -> None:
        """An encoded character is the character, in names and values."""
        await stock(shop, 3)
        assert await ids(shop, query) == [1, 2]

    @every_case(
        ("name", "value"),
        [
            ("accept", "application/xml;q=1, */*;q=0"), ("range", "bytes=0-0"), ("if-match", '"x"'),
            ("if-modified-since", "Thu, 01 Jan 2099 00:00:00 GMT"), ("idempotency-key", ""),
        ],
    )  # fmt: skip
    async def test_no_header_changes_the_page(self, shop: Shop, name: str, value: str) -> None:
        """There is one representation, always whole; dates are no validators."""
        answer = await shop.ask("GET", "/v1/pets", [(name, value)])
        assert (answer.status, answer.body) == (200, b"[]")
