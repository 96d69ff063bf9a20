"""Methods and paths: HEAD, OPTIONS, and what is no way to another method or into the interface."""

from __future__ import annotations

import pytest

from tests.api.refusals import ALLOWED, GOOD, PATCHES
from tests.api.world import URL
from tests.support.cases import every_case
from tests.support.service import Shop

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def shop(shared_shop: Shop) -> Shop:
    """Tests that need animals find one at least."""
    return shared_shop


@every_case(
    "target",
    [
        *(call.target for name, call in GOOD.items() if call.method == "GET" and name != "getUsage"),
        "/v1/pets?limit=1", "/v1/pets/9", "/v1/pets?limit=0",
    ],
)  # fmt: skip
async def test_head_equals_get(shop: Shop, target: str) -> None:
    """HEAD wherever GET is: no body, the same status, and every header but those of the moment."""
    await shop.post({"name": "Rex", "categoryId": 1})
    await shop.send("POST", "/v1/webhooks", {"url": URL}, [("idempotency-key", "k")])
    moment = {"x-request-id", "ratelimit", "x-ratelimit-remaining"}
    whole = await shop.ask("GET", target)
    head = await shop.ask("HEAD", target)
    assert head.status == whole.status
    assert head.body == b""
    assert head.headers["content-length"] == str(len(whole.body))
    assert sorted(pair for pair in head.raw_headers if pair[0] not in moment) == sorted(
        pair for pair in whole.raw_headers if pair[0] not in moment
    )


class TestOptions204:
    """OPTIONS on a known path."""

    @pytest.mark.parametrize("authorization", [None, "Bearer nonsense", "valid"])
    async def test_options_names_the_methods_of_each_path(
        self, shop: Shop, authorization: str | None
    ) -> None:
        """Each path says its methods, whether there is such a thing or not; no key is needed or looked at."""
        value = f"Bearer {shop.key}" if authorization == "valid" else authorization
        targets = {GOOD[name].target: allow for name, allow in ALLOWED.items()}
        for target, allow in [*targets.items(), ("/v1/pets/abc", ALLOWED["getPet"])]:
            answer = await shop.call("OPTIONS", target, [("authorization", value)])
            assert (answer.status, answer.headers["allow"]) == (204, allow), target
            assert answer.headers.get("accept-patch") == (PATCHES if "PATCH" in allow else None)
            assert '"address";' in answer.headers["ratelimit-policy"]
            assert not any(name.startswith("access-control-") for name in answer.headers)

    async def test_options_costs_neither_the_account_nor_the_address(self, shop: Shop) -> None:
        """Browsers ask before each request, and without a key."""
        key, _ = await shop.open_account("a", "free")
        for _ in range(3):
            answer = await shop.call("OPTIONS", "/v1/pets", [("authorization", f"Bearer {key}")])
            assert answer.headers["x-ratelimit-remaining"] == "600"
        assert (await shop.ask("GET", "/v1/pets", key=key)).headers["x-ratelimit-remaining"] == "59"

    async def test_of_an_unknown_path_is_like_any_other_method(self, shop: Shop) -> None:
        """401 without a key, 404 with one."""
        assert (await shop.call("OPTIONS", "/v1/nothing")).status == 401
        assert (await shop.ask("OPTIONS", "/v1/nothing")).code == "not_found"

    async def test_the_head_is_looked_at_first(self, shop: Shop) -> None:
        """A target that is too long is 414 for OPTIONS too."""
        assert (await shop.call("OPTIONS", "/v1/pets?" + "x" * 9_000)).status == 414


@every_case("name", ["x-http-method-override", "x-http-method", "x-method-override", "_method"])
async def test_override_headers_are_not_read(shop: Shop, name: str) -> None:
    """The method is the request's own."""
    before = shop.pets()
    assert (await shop.ask("GET", "/v1/pets/1", [(name, "DELETE")])).status == 200
    assert (await shop.ask("PUT", "/v1/pets/1", [(name, "GET")])).status == 405
    assert (await shop.ask("GET", "/v1/pets?_method=DELETE")).code == "invalid_parameter"
    assert shop.pets() == before


@every_case("path", ["/V1/pets", "//v1/pets", "/v1pets", "/pets", "/v2/pets", "/v1%2Fpets", "/./v1/pets"])
async def test_outside_the_interface(shop: Shop, path: str) -> None:
    """What does not begin with /v1/ is the site's 404, with the Error body and without limits."""
    answer = await shop.ask("GET", path)
    assert (answer.status, answer.code) == (404, "not_found")
    assert "x-ratelimit-limit" not in answer.headers
