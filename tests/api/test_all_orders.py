"""GET /store/orders?scope=all: a store's own program sees every order that it may move."""

from __future__ import annotations

import pytest

from petstore.core.keys import Access
from tests.api.checks import CheckedShop
from tests.api.test_orders import ORDERS, add_pets, patch, place, shown

ALL = f"{ORDERS}?scope=all"


async def three_orders(shop: CheckedShop) -> str:
    """Of the shop's own account, of another one, and of its own again; the other one's key."""
    other, _ = await shop.open_account("other")
    await add_pets(shop, 3)
    for pet_id, key in ((1, None), (2, other), (3, None)):
        await place(shop, pet_id, key=key)
    return other


class Test200:
    """With a key of the level manage."""

    async def test_every_order_with_the_name_of_its_account(self, shop: CheckedShop) -> None:
        """And by id and status, which combine; without it, or as `own`, the account's own, without a name."""
        own = (await shop.store.accounts.find("1")).name
        await three_orders(shop)
        await patch(shop, 2, {"status": "approved"})
        mine, others = [shown(1, 1), shown(3, 3)], shown(2, 2, "approved", account="other")
        assert (await shop.ask("GET", ALL)).json() == [
            mine[0] | {"account": own}, others, mine[1] | {"account": own},
        ]  # fmt: skip
        assert (await shop.ask("GET", f"{ALL}&id=2&id=9")).json() == [others]
        assert (await shop.ask("GET", f"{ALL}&status=approved")).json() == [others]
        assert (await shop.ask("GET", f"{ALL}&status=approved&id=1")).json() == []
        for query in ("", "?scope=own"):
            assert (await shop.ask("GET", f"{ORDERS}{query}")).json() == mine

    async def test_a_renamed_account_has_its_name_of_now(self, shop: CheckedShop) -> None:
        """Which is the one that the operator knows."""
        await three_orders(shop)
        await shop.store.accounts.rename("other", "elsewhere", "staff")
        assert (await shop.ask("GET", f"{ALL}&id=2")).json()[0]["account"] == "elsewhere"

    async def test_a_walk_keeps_the_scope(self, shop: CheckedShop) -> None:
        """`Link` has it on every page; its cursor belongs to it and serves every manage key."""
        other = await three_orders(shop)
        found: list[int] = []
        target = f"{ALL}&limit=1&status=placed"
        while target:
            page = await shop.ask("GET", target)
            found += [order["id"] for order in page.json()]
            assert page.links["first"] == f"{ORDERS}?limit=1&status=placed&scope=all"
            target = page.links.get("next", "")
        assert found == [1, 2, 3]
        cursor = (await shop.ask("GET", f"{ALL}&limit=1")).links["next"].partition("cursor=")[2]
        colleague, _ = await shop.open_account("colleague", access=Access.MANAGE)
        assert (await shop.ask("GET", f"{ALL}&cursor={cursor}", key=colleague)).status == 200
        for key in (shop.key, other):
            assert (await shop.ask("GET", f"{ORDERS}?cursor={cursor}", key=key)).status == 400
        own = (await shop.ask("GET", f"{ORDERS}?limit=1")).links["next"].partition("cursor=")[2]
        assert (await shop.ask("GET", f"{ALL}&cursor={own}")).status == 400


class TestRefused:
    """Without such a key, or with another value."""

    @pytest.mark.parametrize("access", [Access.READ, Access.WRITE])
    async def test_403_below_manage(self, shop: CheckedShop, access: Access) -> None:
        """`forbidden`, and no order is in the answer, not even the account's own; `own` it may say."""
        await three_orders(shop)
        key, _ = await shop.open_account("curious", access=access)
        for query in ("", "&id=1", "&status=placed", "&cursor=x"):
            answer = await shop.ask("GET", f"{ALL}{query}", key=key)
            assert (answer.status, answer.code) == (403, "forbidden")
            assert f"this key has {access}" in answer.json()["message"]
        assert (await shop.ask("GET", f"{ORDERS}?scope=own", key=key)).json() == []

    @pytest.mark.parametrize(
        "query", ["scope=", "scope=ALL", "scope=*", "scope=all&scope=all", "scope=other"]
    )
    async def test_400(self, shop: CheckedShop, query: str) -> None:
        """`invalid_parameter`, which names it, for every key."""
        key, _ = await shop.open_account("curious", access=Access.READ)
        for each in (shop.key, key):
            answer = await shop.ask("GET", f"{ORDERS}?{query}", key=each)
            assert (answer.status, answer.code) == (400, "invalid_parameter")
            assert answer.json()["message"].startswith("scope: ")
