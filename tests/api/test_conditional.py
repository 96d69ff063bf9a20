"""Conditional requests: entity tags, If-None-Match (304) and If-Match (412). RFC 9110, 8.8.3 and 13.

What a store does with a tag: storage/contract/test_preconditions.py.
"""

from __future__ import annotations

import pytest

from tests.api.test_change_pet import order
from tests.api.test_deliveries import delivered, note
from tests.api.world import URL
from tests.support.cases import every_case
from tests.support.journal import ACTOR
from tests.support.service import Answer, Pairs, Shop

KNOWN = [
    "/v1/pets", "/v1/pets?id=1", "/v1/pets/1", "/v1/categories", "/v1/store/orders",
    "/v1/events?type=order.*", "/v1/webhooks", "/v1/webhooks/1", "/v1/webhooks/1/deliveries",
]  # fmt: skip


@pytest.fixture
async def rex(rex: Shop) -> Shop:
    """The shop with an animal and a webhook."""
    await rex.send("POST", "/v1/webhooks", {"url": URL})
    return rex


async def tag_of(shop: Shop, target: str) -> str:
    return (await shop.ask("GET", target)).headers["etag"]


def limits(answer: Answer) -> set[tuple[str, str]]:
    """The headers of an answer but those that differ from request to request, and those of the content."""
    own = {"x-ratelimit-remaining", "ratelimit", "x-request-id", "content-type", "content-length"}
    return {(name, value) for name, value in answer.headers.items() if name not in own}


class TestTag:
    """`ETag`."""

    async def test_an_animal_has_one_tag_wherever_it_stands_alone(self, rex: Shop) -> None:
        """An animal's ETag is the same from its creation, its change, getPet, and a list of its one `id`."""
        added = await rex.post({"name": "Mia", "categoryId": 2})
        changed = await rex.patch(2, {"name": "Mia"})
        for target in (
            "/v1/pets/2",
            "/v1/pets?id=2",
            "/v1/pets?id=2&id=2&limit=1",
            "/v1/pets?id=2&status=available",
        ):
            assert await tag_of(rex, target) == added.headers["etag"] == changed.headers["etag"]
        assert (
            await tag_of(rex, "/v1/pets?id=1&id=2")
            != added.headers["etag"]
            != await tag_of(rex, "/v1/pets/1")
        )

    async def test_an_order_has_one_tag_wherever_it_stands_alone(self, rex: Shop) -> None:
        """An order's ETag is the same from its placing, its change, and a list of its one `id`, any scope."""
        placed = await rex.send("POST", "/v1/store/orders", {"petId": 1})
        moved = await rex.send("PATCH", "/v1/store/orders/1", {"status": "placed"})
        for target in ("/v1/store/orders?id=1", "/v1/store/orders?id=1&scope=all"):
            assert await tag_of(rex, target) == placed.headers["etag"] == moved.headers["etag"]
        assert await tag_of(rex, "/v1/store/orders?scope=all") != await tag_of(rex, "/v1/store/orders")

    async def test_a_full_last_page_changes_with_the_next_animal(self, rex: Shop) -> None:
        """The body of a full last page stays, and its `Link` gets a next page."""
        before = await rex.ask("GET", "/v1/pets?limit=1")
        await rex.post({"name": "Mia", "categoryId": 2})
        after = await rex.ask("GET", "/v1/pets?limit=1", [("if-none-match", before.headers["etag"])])
        assert (after.status, after.body) == (200, before.body)
        assert ("next" in before.links, "next" in after.links) == (False, True)
        assert after.headers["etag"] != before.headers["etag"]

    async def test_every_process_gives_the_same_tag(self, rex: Shop) -> None:
        """ETags stay the same after a restart, as a client may ask another replica."""
        tags = [await tag_of(rex, target) for target in KNOWN]
        await rex.restart()
        assert [await tag_of(rex, target) for target in KNOWN] == tags


class TestNotModified304:
    """`If-None-Match`."""

    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    @every_case("target", KNOWN)
    async def test_what_the_client_has(self, rex: Shop, target: str, method: str) -> None:
        """No body, the headers of the 200, cached and not, and one request less."""
        for _ in range(2):
            whole = await rex.ask(method, target)
            known = await rex.ask(method, target, [("if-none-match", whole.headers["etag"])])
            assert (known.status, known.body) == (304, b"")
            assert limits(known) == limits(whole)
            left = [int(answer.headers["x-ratelimit-remaining"]) for answer in (whole, known)]
            assert left[0] - left[1] == 1

    async def test_what_has_changed_is_whole(self, rex: Shop) -> None:
        """Each of them, after a change of what it shows."""
        tags = {target: await tag_of(rex, target) for target in KNOWN}
        await rex.send("POST", "/v1/store/orders", {"petId": 1})
        await rex.store.categories.name(1, "Dogs", ACTOR)
        await rex.send("PATCH", "/v1/webhooks/1", {"description": "x"})
        await note(rex, delivered("evt_000000000000_1"))
        for target, tag in tags.items():
            assert (await rex.ask("GET", target, [("if-none-match", tag)])).status == 200, target

    @every_case(
        ("value", "status"),
        [
            ("*", 304), (" * ", 304), ("TAG", 304), ("W/TAG", 304), ('"a,b", TAG', 304), (",,TAG ,", 304),
            ('"a"\tW/"", ,TAG', 200), ('""', 200), ("TAGTAG", 200), ("w/TAG", 200), ("", 200), (",", 200),
            ("TAG, *", 200), ("bare", 200), ('TAG, "', 200), ('"a b", TAG', 200), ('"a"\nTAG', 304),
        ],
    )  # fmt: skip
    async def test_if_none_match_is_read_in_every_valid_form(
        self, rex: Shop, value: str, status: int
    ) -> None:
        """Weak comparison with each of a list, also in lines; what is malformed is ignored."""
        sent = value.replace("TAG", await tag_of(rex, "/v1/pets"))
        lines = [("if-none-match", line) for line in sent.split("\n")]
        assert (await rex.ask("GET", "/v1/pets", lines)).status == status

    async def test_it_is_for_nobody_else(self, rex: Shop) -> None:
        """The first to ask after a change has the page already: the next one gets all of it."""
        tag = await tag_of(rex, "/v1/pets")
        for name in ("Max", "Rex"):
            await rex.patch(1, {"name": name})
        assert (await rex.ask("GET", "/v1/pets", [("if-none-match", tag)])).status == 304
        for _ in range(2):
            whole = await rex.ask("GET", "/v1/pets")
            assert (whole.status, whole.json()[0]["name"]) == (200, "Rex")

    async def test_errors_are_errors(self, rex: Shop) -> None:
        """`*` is true of what is there."""
        for target, status in (("/v1/pets/9", 404), ("/v1/pets?page=2", 400)):
            assert (await rex.ask("GET", target, [("if-none-match", "*")])).status == status

    async def test_an_account_sees_what_its_key_may(self, rex: Shop) -> None:
        """A tag of another account's answer is no way to it."""
        await rex.send("POST", "/v1/store/orders", {"petId": 1})
        tag = await tag_of(rex, "/v1/store/orders?id=1")
        other, _ = await rex.open_account("other")
        answer = await rex.ask("GET", "/v1/store/orders?id=1", [("if-none-match", tag)], key=other)
        assert (answer.status, answer.body) == (200, b"[]")


async def change(shop: Shop, method: str, target: str, *headers: tuple[str, str]) -> Answer:
    """A change of the name of an animal, or of nothing of an order; or a removal."""
    document = {"name": "Max"} if "pets" in target else {"status": "placed"}
    return await shop.send(method, target, document if method == "PATCH" else None, list(headers))


class TestPreconditionFailed412:
    """`If-Match`."""

    @pytest.mark.parametrize("method", ["PATCH", "DELETE"])
    @pytest.mark.parametrize("target", ["/v1/pets/1", "/v1/store/orders/1"])
    @pytest.mark.parametrize("value", ["*", "TAG", '"a,b", TAG', '"a"\nTAG'])
    async def test_if_match_is_read_in_every_valid_form(
        self, rex: Shop, method: str, target: str, value: str
    ) -> None:
        """Strong comparison with each of a list, which may stand in lines. A refusal changes nothing. A tag
        that a proxy has made weak is told from another state: to read it again would never help."""
        if "orders" in target:
            await rex.send("POST", "/v1/store/orders", {"petId": 1})
        tag = await tag_of(rex, f"{target.removesuffix('/1')}?id=1")
        before = rex.fingerprint()
        for other in (f"W/{tag}", '"a"', 'W/"a"'):
            answer = await change(rex, method, target, ("if-match", other))
            assert (answer.status, answer.code) == (412, "precondition_failed")
            assert ("without W/" in answer.json()["message"]) is (other == f"W/{tag}")
        assert rex.fingerprint() == before
        lines = [("if-match", line) for line in value.replace("TAG", tag).split("\n")]
        answer = await change(rex, method, target, *lines)
        assert answer.status == (200 if method == "PATCH" else 204)

    async def test_after_404_and_before_409(self, rex: Shop) -> None:
        """An animal that an order holds, with its former tag: 412 comes before 409."""
        for target in ("/v1/pets/9", "/v1/store/orders/9"):
            for method in ("PATCH", "DELETE"):
                assert (await change(rex, method, target, ("if-match", '"a"'))).status == 404
        order(rex, "delivered")
        order(rex, "placed")
        for value, status in (('"a"', 412), ("*", 409)):
            match: Pairs = [("if-match", value)]
            assert (await rex.patch(1, {"status": "sold"}, match)).status == status
            assert (await rex.ask("DELETE", "/v1/pets/1", match)).status == status
            assert (await rex.ask("DELETE", "/v1/store/orders/1", match)).status == status

    async def test_elsewhere_it_is_ignored(self, rex: Shop) -> None:
        """A creation changes nothing that is there."""
        for headers in ([("if-match", '"a"')], [("if-match", "bare"), ("if-none-match", "*")]):
            assert (await rex.post({"name": "Mia", "categoryId": 2}, headers)).status == 201
            assert (await rex.ask("GET", "/v1/categories", [headers[0]])).status == 200
