"""403: what each level of keys may do, for every operation of the table, and suspended accounts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from petstore.api.operations import operations
from petstore.api.pipeline.routing import Operation
from petstore.core.keys import Access
from tests.api.test_document import TABLE
from tests.support import contract
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.service import Answer, Shop, open_shop

METHODS = [
    (row, method) for row in TABLE for method in (("GET", "HEAD") if row.method == "GET" else (row.method,))
]
SOME = ("GET", "/v1/pets"), ("POST", "/v1/pets"), ("GET", "/v1/nothing"), ("PUT", "/v1/pets")


def request_of(row: Operation) -> tuple[str, list[tuple[str, str]], bytes]:
    """Target, headers and body by the document's first example; a parameter of the path is 1."""
    assert row.path is not None
    template = row.path.removeprefix("/v1")
    described = contract.document()["paths"][template][row.method.lower()]
    target = re.sub(r"\{\w+\}", "1", row.path)
    if "requestBody" not in described:
        return target, [], b""
    ((media_type, content), *_) = contract.resolve(described["requestBody"])["content"].items()
    example = next(iter(content["examples"].values()))["value"]
    return target, [("content-type", media_type)], json.dumps(example).encode()


async def send(shop: Shop, row: Operation, key: str, method: str | None = None) -> Answer:
    target, headers, body = request_of(row)
    return await shop.call(method or row.method, target, [("authorization", f"Bearer {key}"), *headers], body)


async def key_of(shop: Shop, access: Access) -> str:
    """A key of the shop's own account, which has animals 1 and 2, and order 1 of animal 2."""
    for number in (1, 2):
        await shop.post({"name": f"pet {number}", "categoryId": 1})
    await shop.send("POST", "/v1/store/orders", {"petId": 2})
    return str((await shop.store.keys.issue("tests", "test", ACTOR, access=access)).secret)


def ids(value: object) -> str:
    return value.name if isinstance(value, Operation) else str(value)


class TestLevels:
    """Each includes the one before."""

    @pytest.mark.parametrize("access", Access)
    @pytest.mark.parametrize(("row", "method"), METHODS, ids=ids)
    async def test_forbidden_exactly_above_the_level(
        self, shop: Shop, row: Operation, method: str, access: Access
    ) -> None:
        """403 for the operations above the key's level and for no other; such a request changes nothing, and
        a key of level `read` changes nothing whatever it asks."""
        key = await key_of(shop, access)
        before = shop.fingerprint()
        answer = await send(shop, row, key, method)
        assert (answer.status == 403) == (not access.includes(row.access))
        if answer.status == 403:
            assert answer.json() == {
                "code": "forbidden",
                "message": f"This operation needs a key of level {row.access}; this key has {access}."
                " Ask the operator for one.",
                "status": 403,
            }
        if answer.status == 403 or access is Access.READ:
            assert shop.fingerprint() == before

    async def test_the_level_of_what_changes(self) -> None:
        """No operation but GET takes less than `write`, and none of the published ones takes more."""
        assert {row.access for row in TABLE if row.method == "GET"} == {Access.READ}
        assert Access.READ not in {row.access for row in TABLE if row.method != "GET"}
        published = {row.name: row.access for row in TABLE if row.name in ("listPets", "createPet", "getPet")}
        assert set(published.values()) == {Access.READ, Access.WRITE}

    async def test_it_costs_one(self, shop: Shop) -> None:
        """It is authenticated: it counts as any other answer does."""
        key, _ = await shop.open_account("reader", access=Access.READ)
        left = [
            int((await shop.ask(method, "/v1/pets", key=key)).headers["x-ratelimit-remaining"])
            for method in ("GET", "POST", "GET")
        ]
        assert left == [59, 58, 57]

    async def test_a_page_that_is_kept_is_not_for_everybody(
        self, tmp_path: Any, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The level is checked before a page is answered from memory: a list that needed `manage`."""
        table = operations

        def stricter(*handlers: Any) -> list[Operation]:
            rows = table(*handlers)
            fields = {name: getattr(rows[0], name) for name in rows[0].__struct_fields__}
            return [Operation(**{**fields, "access": Access.MANAGE}), *rows[1:]]

        monkeypatch.setattr("petstore.wiring.service.operations", stricter)
        monkeypatch.setattr(
            "tests.support.service.check_answer", lambda *_: None
        )  # the contract knows of none
        async with open_shop(tmp_path, clock) as shop:
            writer, _ = await shop.open_account("writer")
            for _ in range(3):
                assert (await shop.ask("GET", "/v1/pets")).status == 200
                assert (await shop.ask("GET", "/v1/pets", key=writer)).code == "forbidden"


class TestSuspension:
    """403 `account_suspended`: before the limits, for nothing, until the account is resumed."""

    async def test_every_answer_until_it_is_resumed(self, shop: Shop) -> None:
        """All keys of the account, whatever they ask; OPTIONS as for everybody. Other accounts go on."""
        key, _ = await shop.open_account("shop")
        second = (await shop.store.keys.issue("shop", "test", ACTOR)).secret
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 200
        await shop.store.accounts.suspend("shop", ACTOR)
        for method, path in SOME:
            for secret in (key, second):
                answer = await shop.ask(method, path, key=secret)
                assert (answer.status, answer.code) == (403, "account_suspended")
                assert "ask the operator" in answer.json()["message"]
        assert (await shop.ask("OPTIONS", "/v1/pets", key=key)).status == 204
        assert (await shop.ask("GET", "/v1/pets")).status == 200
        await shop.store.accounts.resume("shop", ACTOR)
        assert (await shop.ask("GET", "/v1/pets", key=key)).headers["x-ratelimit-remaining"] == "58"

    async def test_it_costs_nothing(self, shop: Shop) -> None:
        """Neither the account nor the address, whose window the answer describes, however many there are."""
        key, _ = await shop.open_account("shop")
        await shop.store.accounts.suspend("shop", ACTOR)
        for _ in range(700):
            answer = await shop.ask("GET", "/v1/pets", key=key)
            assert answer.code == "account_suspended"
        assert answer.headers["ratelimit-policy"] == '"address";q=600;w=60'
        assert answer.headers["x-ratelimit-remaining"] == "600"
        assert (await shop.ask("GET", "/v1/usage")).status == 200

    async def test_a_revoked_key_stays_401(self, shop: Shop) -> None:
        """What is wrong with the key is told before what is wrong with its account."""
        key, key_id = await shop.open_account("shop")
        await shop.store.accounts.suspend("shop", ACTOR)
        await shop.store.keys.revoke(key_id, ACTOR)
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 401

    async def test_closing_revokes(self, shop: Shop) -> None:
        """The next request of each key is 401 and says so."""
        key, _ = await shop.open_account("shop")
        assert (await shop.ask("GET", "/v1/pets", key=key)).status == 200
        await shop.store.accounts.close("shop", ACTOR)
        answer = await shop.ask("GET", "/v1/pets", key=key)
        assert answer.status == 401, answer.json()["message"]
        assert "was revoked" in answer.json()["message"]
