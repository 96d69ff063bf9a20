"""GET /pets/{petId}: the animal, its identifiers, and the deprecation until and after the removal."""

from __future__ import annotations

from pathlib import Path

from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.service import Answer, Shop, open_shop

REMOVAL = 1_922_659_200


def check_kit(answer: Answer, successor: str, sunset: str = "Thu, 05 Dec 2030 00:00:00 GMT") -> None:
    """The whole deprecation kit, exactly."""
    assert answer.headers["deprecation"] == "@1795219200"
    assert answer.headers["sunset"] == sunset
    kit = f'</docs/deprecation>; rel="deprecation"; type="text/html", <{successor}>; rel="successor-version"'
    help_link = f', </docs/errors#{answer.code}>; rel="help"' if answer.status >= 400 else ""
    assert answer.headers["link"] == kit + help_link


class TestGetPet200:
    """An animal by its path."""

    async def test_an_animal_is_answered_with_the_same_bytes_as_in_the_201(self, shop: Shop) -> None:
        """getPet answers with the bytes of the 201 of the animal's creation, so its ETag is the same too."""
        created = await shop.post({"name": "Réx", "categoryId": 2**63 - 1, "status": "sold"})
        answer = await shop.ask("GET", "/v1/pets/1")
        assert (answer.status, answer.body) == (200, created.body)
        check_kit(answer, "/v1/pets?id=1")

    @every_case("query", ["", "?", "?&&"])
    async def test_an_empty_query_is_no_parameter(self, shop: Shop, query: str) -> None:
        """A target that ends with `?` is what some programs send."""
        await shop.post({"name": "Rex", "categoryId": 1})
        assert (await shop.ask("GET", f"/v1/pets/1{query}")).json()["id"] == 1


class TestGetPet404:
    """No such animal, or an identifier that can name none."""

    @every_case(
        ("identifier", "successor"),
        [
            *((str(number), f"/v1/pets?id={number}") for number in (2, 1_000, 2**53 + 1, 2**63 - 1)),
            *((text, "/v1/pets") for text in ("0", "abc", "%31")),
        ],
    )
    async def test_an_unknown_id_is_404_and_names_its_successor(
        self, shop: Shop, identifier: str, successor: str
    ) -> None:
        """The successor of an identifier that is not canonical is the list."""
        answer = await shop.ask("GET", f"/v1/pets/{identifier}")
        assert (answer.status, answer.code) == (404, "not_found")
        check_kit(answer, successor)

    async def test_an_id_of_bytes_that_are_no_text_is_404(self, shop: Shop) -> None:
        """No identifier is written like that, so there is no such animal."""
        answer = await shop.ask("GET", b"/v1/pets/\xff\xfe\x00")
        assert (answer.status, answer.code) == (404, "not_found")


class TestDeprecationKit:
    """Every response of the operation carries it, whatever its status."""

    async def test_refusals_have_the_headers_of_the_deprecation(self, shop: Shop) -> None:
        """The headers stand on refusals without a key, before authentication, and past the limit."""
        key, _ = await shop.open_account("small", "enterprise", 1, 1)
        await shop.ask("GET", "/v1/pets", key=key)
        long = await shop.ask("GET", "/v1/pets/7?" + "x" * 9_000)
        large = await shop.ask("GET", "/v1/pets/7", [("x-large", "x" * 17_000)])
        host = await shop.ask("GET", "/v1/pets/7", [("host", "a b")])
        limited = await shop.ask("GET", "/v1/pets/7", key=key)
        answers = [await shop.call("GET", "/v1/pets/7"), long, large, host, limited]
        assert [answer.status for answer in answers] == [401, 414, 431, 400, 429]
        for answer in answers:
            check_kit(answer, "/v1/pets?id=7")

    async def test_not_on_other_operations(self, shop: Shop) -> None:
        """The list and the other methods of getPet's path are not deprecated."""
        answers = [
            await shop.ask("GET", "/v1/pets"),
            await shop.post({"name": "n", "categoryId": 1}),
            await shop.ask("GET", "/v1/nothing"),
            await shop.ask("PUT", "/v1/pets/7"),
            await shop.ask("DELETE", "/v1/pets/7"),
            await shop.patch(7, {"name": "n"}),
            await shop.ask("OPTIONS", "/v1/pets/7"),
        ]
        assert not any({"deprecation", "sunset"} & set(answer.headers) for answer in answers)


class TestGetPet410:
    """The operation is gone from 5 December 2030, 00:00:00 UTC on."""

    async def test_at_the_moment_it_is_gone(self, shop: Shop) -> None:
        """410 `gone`, with where to go, for GET and HEAD; the last second before is the operation's, to the
        millisecond."""
        await shop.post({"name": "n", "categoryId": 1})
        for ms in (REMOVAL * 1_000 - 1_000, REMOVAL * 1_000 - 1):
            shop.clock.ms = ms
            assert (await shop.ask("GET", "/v1/pets/1")).status == 200
        shop.clock.ms += 1
        answer = await shop.ask("GET", "/v1/pets/1")
        assert (answer.status, answer.code) == (410, "gone")
        assert "/v1/pets?id=1" in answer.json()["message"]
        check_kit(answer, "/v1/pets?id=1")
        assert (await shop.ask("GET", answer.links["successor-version"])).json()[0]["id"] == 1
        assert (await shop.call("GET", answer.links["deprecation"])).status == 200
        assert (await shop.ask("HEAD", "/v1/pets/1")).status == 410

    @every_case("identifier", ["99", "abc", "0"])
    async def test_whatever_the_identifier(self, shop: Shop, identifier: str) -> None:
        """The removal is looked at before the animal and before query parameters."""
        shop.clock.set_seconds(REMOVAL + 86_400 * 365)
        assert (await shop.ask("GET", f"/v1/pets/{identifier}?page=2")).code == "gone"
        assert (await shop.ask("GET", f"/v1/pets/{identifier}")).code == "gone"

    async def test_after_authentication_and_limits(self, shop: Shop) -> None:
        """It is still 401 without a key and 429 past the limit; 410 costs one like any answer."""
        shop.clock.set_seconds(REMOVAL)
        key, _ = await shop.open_account("small", "enterprise", 1, 1)
        assert (await shop.call("GET", "/v1/pets/1")).status == 401
        assert (await shop.ask("GET", "/v1/pets/1", key=key)).headers["x-ratelimit-remaining"] == "0"
        assert (await shop.ask("GET", "/v1/pets/1", key=key)).status == 429

    async def test_the_operator_may_postpone(self, tmp_path: Path, clock: ManualClock) -> None:
        """A later date moves Sunset, the end and Location together."""
        async with open_shop(tmp_path, clock, removal_date="2031-06-01") as shop:
            clock.set_seconds(REMOVAL)
            created = await shop.post({"name": "n", "categoryId": 1})
            assert created.headers["location"] == "/v1/pets/1"
            answer = await shop.ask("GET", "/v1/pets/1")
            assert answer.status == 200
            check_kit(answer, "/v1/pets?id=1", "Sun, 01 Jun 2031 00:00:00 GMT")
            clock.set_seconds(1_938_038_399)
            assert (await shop.ask("GET", "/v1/pets/1")).status == 200
            clock.set_seconds(1_938_038_400)
            assert (await shop.ask("GET", "/v1/pets/1")).status == 410
