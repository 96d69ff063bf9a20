"""GET /store/orders?scope=all: a store's own program sees every order that it may move."""

from __future__ import annotations

import pytest

from petstore.core.keys import Access
from tests.api.test_orders import ORDERS, patch, shown, three_orders
from tests.api.test_paging import flat, walk
from tests.support.service import Shop

ALL = f"{ORDERS}?scope=all"


class Test200:
    """All orders are answered to a key of the level manage."""

    async def test_every_order_with_the_name_of_its_account(self, shop: Shop) -> None:
        """A list of all is found by id and status too, combined; without `all`, or as `own`, it has the
        account's own, without a name."""
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

    @pytest.mark.parametrize(("scope", "pages"), [("own", [[1], [3], []]), ("all", [[1], [2], [3], []])])
    async def test_by_the_last_identifier_of_each_page(
        self, shop: Shop, scope: str, pages: list[list[int]]
    ) -> None:
        """`after` leads a client that sees bodies only through either list, with a filter too."""
        await three_orders(shop)
        place = ""
        for expected in pages:
            page = await shop.ask("GET", f"{ORDERS}?limit=1&status=placed&scope={scope}{place}")
            assert [order["id"] for order in page.json()] == expected
            place = f"&after={expected[0]}" if expected else ""

    async def test_a_new_name_is_no_304(self, shop: Shop) -> None:
        """The name is that of now, which the operator knows. Of one order the tag is its own, for If-Match,
        and says nothing of it."""
        await three_orders(shop)
        tag = (await shop.ask("GET", f"{ALL}&id=2")).headers["etag"]
        await shop.store.accounts.rename("other", "elsewhere", "staff")
        answer = await shop.ask("GET", f"{ALL}&id=2", [("if-none-match", tag)])
        assert (answer.status, answer.headers["etag"]) == (200, tag)
        assert answer.json()[0]["account"] == "elsewhere"
        assert (await shop.ask("GET", f"{ORDERS}?id=1", [("if-none-match", "*")])).status == 304

    async def test_a_walk_keeps_the_scope(self, shop: Shop) -> None:
        """`Link` has it on every page; its cursor belongs to it and serves every manage key."""
        other = await three_orders(shop)
        first = f"{ORDERS}?limit=1&status=placed&scope=all"
        assert flat(await walk(shop, f"{ALL}&limit=1&status=placed", first=first)) == [1, 2, 3]
        cursor = (await shop.ask("GET", f"{ALL}&limit=1")).links["next"].partition("cursor=")[2]
        colleague, _ = await shop.open_account("colleague", access=Access.MANAGE)
        assert (await shop.ask("GET", f"{ALL}&cursor={cursor}", key=colleague)).status == 200
        for key in (shop.key, other):
            assert (await shop.ask("GET", f"{ORDERS}?cursor={cursor}", key=key)).status == 400
        own = (await shop.ask("GET", f"{ORDERS}?limit=1")).links["next"].partition("cursor=")[2]
        assert (await shop.ask("GET", f"{ALL}&cursor={own}")).status == 400
