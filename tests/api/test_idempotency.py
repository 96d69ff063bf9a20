"""Idempotency-Key on POST /pets: adding an animal once, however often it is asked for (I6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.service import Answer, Shop, open_shop, outsider, settle

REX = {"name": "Rex", "categoryId": 1}
DAY_SECONDS = 86_400


async def post(shop: Shop, document: object, key: str, account: str | None = None) -> Answer:
    return await shop.post(document, [("idempotency-key", key)], key=account)


@asynccontextmanager
async def held(shop: Shop) -> AsyncIterator[None]:
    """Another connection holds the write lock, so that the service's writes wait."""
    with outsider(shop.path) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


class TestReplay201:
    """A request repeats the key and the animal."""

    async def test_the_same_answer_again(self, shop: Shop) -> None:
        """A replay has the 201, the body and the Location of the first, and a mark; there is one animal."""
        first = await post(shop, REX, "k")
        again = await post(shop, REX, "k")
        assert (first.status, again.status) == (201, 201)
        assert again.body == first.body
        assert again.headers["location"] == first.headers["location"]
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert len(shop.pets()) == 1

    async def test_what_counts_is_the_animal(self, shop: Shop) -> None:
        """A retry has the same animal; its body's order, spaces, escapes and stated defaults may differ."""
        await post(shop, REX, "k")
        body = b'\n{ "categoryId":1,"name":"R\\u0065x", "status":"available"}'
        again = await shop.post(None, [("idempotency-key", "k")], body=body)
        assert (again.status, again.headers.get("idempotency-replayed")) == (201, "true")

    async def test_location_follows_the_removal_date(self, shop: Shop) -> None:
        """A replay after the removal refers to what works then: the list of the one."""
        shop.clock.set_seconds(1_922_659_200 - 60)
        assert (await post(shop, REX, "k")).headers["location"] == "/v1/pets/1"
        shop.clock.advance(60)
        again = await post(shop, REX, "k")
        assert again.headers["location"] == "/v1/pets?id=1"
        assert (await shop.ask("GET", again.headers["location"])).json() == [again.json()]

    async def test_any_key_of_the_account(self, shop: Shop) -> None:
        """The scope is the account, not the API key."""
        issued = await shop.store.keys.issue("tests", "test", ACTOR)
        await post(shop, REX, "k")
        again = await post(shop, REX, "k", issued.secret)
        assert again.headers["idempotency-replayed"] == "true"

    @every_case("key", ["x", "k" * 255, "!#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", '"', 'a"b', '"a'])
    async def test_every_valid_form_of_a_key_is_taken(self, shop: Shop, key: str) -> None:
        """1 to 255 visible ASCII characters; quotes around a key are not part of it, in either order."""
        for first, then in ((key, f'"{key}"'), (f'"{key[:254]}2"', f"{key[:254]}2")):
            assert "idempotency-replayed" not in (await post(shop, REX, first)).headers
            for again in (first, then):
                assert (await post(shop, REX, again)).headers["idempotency-replayed"] == "true"

    async def test_a_refused_request_does_not_use_up_its_key(self, shop: Shop) -> None:
        """A request that is refused with 400 leaves its key free for the corrected animal."""
        assert (await post(shop, {"name": ""}, "k")).status == 400
        assert (await post(shop, REX, "k")).status == 201


class TestInUse409:
    """A request repeats a key while the first one is still being carried out."""

    @pytest.mark.parametrize(
        ("target", "document", "other"),
        [
            ("/v1/pets", REX, {"name": "Mia", "categoryId": 2}),
            ("/v1/store/orders", {"petId": 1}, {"petId": 2}),
            ("/v1/webhooks", {"url": "https://a.example"}, {"url": "https://b.example"}),
        ],
    )
    async def test_a_key_whose_first_request_is_under_way_is_409(
        self, shop: Shop, target: str, document: object, other: object
    ) -> None:
        """Told to come back in a second, whatever is to be made; the first one is not disturbed."""
        for _ in range(2):
            await shop.post(REX)
        key, before = [("idempotency-key", "k")], (await shop.ask("GET", target)).json()
        async with held(shop):
            first = asyncio.create_task(shop.send("POST", target, document, key))
            await settle()
            refused = [await shop.send("POST", target, sent, key) for sent in (document, other)]
            assert not first.done()
        assert [(each.status, each.code, each.headers["retry-after"]) for each in refused] == [
            (409, "idempotency_key_in_use", "1")
        ] * 2
        assert (await first).status == 201
        again = await shop.send("POST", target, document, key)
        assert again.headers["idempotency-replayed"] == "true"
        assert len((await shop.ask("GET", target)).json()) == len(before) + 1

    async def test_other_keys_and_accounts_are_not_in_use(self, shop: Shop) -> None:
        """Only the account's own key of that name waits."""
        other, _ = await shop.open_account("other", "pro")
        async with held(shop):
            tasks = [
                asyncio.create_task(post(shop, REX, "k")),
                asyncio.create_task(post(shop, REX, "l")),
                asyncio.create_task(post(shop, REX, "k", other)),
                asyncio.create_task(shop.post(REX)),
            ]
            await settle()
            assert not any(task.done() for task in tasks)
        assert [(await task).status for task in tasks] == [201] * 4
        assert len(shop.pets()) == 4

    async def test_a_failed_write_frees_the_key(self, tmp_path: Path, clock: ManualClock) -> None:
        """A write that fails with 503 leaves its key neither in use nor used."""
        async with open_shop(tmp_path, clock, busy_timeout="20ms") as shop:
            async with held(shop):
                assert (await post(shop, REX, "k")).status == 503
            answer = await post(shop, REX, "k")
            assert (answer.status, answer.headers.get("idempotency-replayed")) == (201, None)
