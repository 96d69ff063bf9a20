"""X-Request-Id: on every response, the client's own where it is a sane one."""

from __future__ import annotations

from tests.support.cases import every_case
from tests.support.service import Shop


async def sent_back(shop: Shop, value: str) -> str:
    return (await shop.ask("GET", "/v1/pets", [("x-request-id", value)])).headers["x-request-id"]


class TestRequestId:
    """Identifiers of requests are kept, or made."""

    async def test_made_when_there_is_none(self, shop: Shop) -> None:
        """A new one for each response, also where two were sent; another process does not begin the same
        series again."""
        twice = [("x-request-id", "a"), ("x-request-id", "a")]
        made = [(await shop.ask("GET", "/v1/pets", twice)).headers["x-request-id"] for _ in range(50)]
        await shop.restart()
        made.append((await shop.ask("GET", "/v1/pets")).headers["x-request-id"])
        assert len({*made, "a"}) == 52
        assert made[-1].partition("-")[0] != made[-2].partition("-")[0]

    @every_case(
        "value",
        ["a", "5f0c6a3e-2a55-4a0e-9d2b-6f0c1d5d7a10", "x" * 128, "A.b_c:d/e+f=g@h-0", "Root=1-67891233-abc"],
    )
    async def test_a_sane_one_is_kept(self, shop: Shop, value: str) -> None:
        """1 to 128 letters, digits and . _ : / + = @ -"""
        assert await sent_back(shop, value) == value

    @every_case(
        "value",
        [
            "", "x" * 129, "a b", "a\r\nX-Evil: 1", "a\nb", "\x00", "é", "<script>", '"', "a,b", "\x1b[31m",
            "${jndi}", "%0a",
        ],
    )  # fmt: skip
    async def test_any_other_is_replaced_never_refused(self, shop: Shop, value: str) -> None:
        """Nothing that could break a header or a log line comes back."""
        made = await sent_back(shop, value)
        assert made != value
        assert value not in made or value == ""

    async def test_a_key_is_no_identifier(self, shop: Shop) -> None:
        """A key that was put into the wrong header reaches neither the answer nor the log."""
        for value in (shop.key, f"x-{shop.key}-y", f"Bearer={shop.key}"):
            assert shop.key not in await sent_back(shop, value)
