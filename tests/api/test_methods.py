"""Methods and paths: HEAD, OPTIONS and 405 with the exact Allow; paths match byte for byte."""

from __future__ import annotations

import pytest

from tests.api.checks import CheckedShop

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def shop(shared_shop: CheckedShop) -> CheckedShop:
    """Tests that need animals find one at least."""
    return shared_shop


LIST_ALLOW = "GET, HEAD, OPTIONS, POST"
ONE_ALLOW = "DELETE, GET, HEAD, OPTIONS, PATCH"
_OTHERS = [
    "PUT", "TRACE", "CONNECT", "QUERY", "PROPFIND", "get", "Get", "post", "options", "X",
    "FOO-BAR",
    "patch", "Delete",
]  # fmt: skip


class TestHead:
    """HEAD wherever GET is: the same status and headers, no body."""

    @pytest.mark.parametrize(
        "target", ["/v1/pets", "/v1/pets?limit=1", "/v1/pets/1", "/v1/pets/9", "/v1/pets?limit=0"]
    )
    async def test_equals_get(self, shop: CheckedShop, target: str) -> None:
        """Every header but those of the moment, and the Content-Length that the HTTP server adds to GET."""
        await shop.post({"name": "Rex", "categoryId": 1})
        moment = {"x-request-id", "ratelimit", "x-ratelimit-remaining"}
        whole = await shop.ask("GET", target)
        head = await shop.ask("HEAD", target)
        assert head.status == whole.status
        assert head.body == b""
        length = ("content-length", str(len(whole.body)))
        assert sorted(pair for pair in head.raw_headers if pair[0] not in moment) == sorted(
            [length, *(pair for pair in whole.raw_headers if pair[0] not in moment)]
        )


class TestOptions204:
    """OPTIONS on a known path."""

    @pytest.mark.parametrize(
        ("path", "allow"), [("/v1/pets", LIST_ALLOW), ("/v1/pets/1", ONE_ALLOW), ("/v1/pets/abc", ONE_ALLOW)]
    )
    @pytest.mark.parametrize("authorization", [None, "Bearer nonsense", "valid"])
    async def test_allow(self, shop: CheckedShop, path: str, allow: str, authorization: str | None) -> None:
        """No key is needed or looked at."""
        value = f"Bearer {shop.key}" if authorization == "valid" else authorization
        answer = await shop.call("OPTIONS", path, [("authorization", value)])
        assert (answer.status, answer.headers["allow"]) == (204, allow)
        assert '"address";' in answer.headers["ratelimit-policy"]
        assert not any(name.startswith("access-control-") for name in answer.headers)

    async def test_costs_nothing(self, shop: CheckedShop) -> None:
        """Neither the account nor the address."""
        key, _ = await shop.open_account("a", "free")
        for _ in range(3):
            answer = await shop.call("OPTIONS", "/v1/pets", [("authorization", f"Bearer {key}")])
            assert answer.headers["x-ratelimit-remaining"] == "600"
        assert (await shop.ask("GET", "/v1/pets", key=key)).headers["x-ratelimit-remaining"] == "59"

    async def test_of_an_unknown_path_is_like_any_other_method(self, shop: CheckedShop) -> None:
        """401 without a key, 404 with one."""
        assert (await shop.call("OPTIONS", "/v1/nothing")).status == 401
        assert (await shop.ask("OPTIONS", "/v1/nothing")).code == "not_found"

    async def test_the_head_is_looked_at_first(self, shop: CheckedShop) -> None:
        """A target that is too long is 414 for OPTIONS too."""
        assert (await shop.call("OPTIONS", "/v1/pets?" + "x" * 9_000)).status == 414


class TestMethod405:
    """A method that a known path does not have."""

    @pytest.mark.parametrize("method", [*_OTHERS, "PATCH", "DELETE"])
    async def test_list(self, shop: CheckedShop, method: str) -> None:
        """Methods are case-sensitive; Allow is exact."""
        before = shop.fingerprint()
        answer = await shop.ask(method, "/v1/pets")
        assert (answer.status, answer.code, answer.headers["allow"]) == (
            405,
            "method_not_allowed",
            LIST_ALLOW,
        )
        assert shop.fingerprint() == before

    @pytest.mark.parametrize("method", [*_OTHERS, "POST"])
    async def test_one(self, shop: CheckedShop, method: str) -> None:
        """There is no POST on one animal, whether it exists or not, and however it is named."""
        for path in ("/v1/pets/1", "/v1/pets/77", "/v1/pets/abc"):
            answer = await shop.ask(method, path)
            assert (answer.status, answer.headers["allow"]) == (405, ONE_ALLOW)

    @pytest.mark.parametrize(
        "name", ["x-http-method-override", "x-http-method", "x-method-override", "_method"]
    )
    async def test_override_headers_are_not_read(self, shop: CheckedShop, name: str) -> None:
        """The method is the request's own."""
        before = shop.pets()
        assert (await shop.ask("GET", "/v1/pets/1", [(name, "DELETE")])).status == 200
        assert (await shop.ask("PUT", "/v1/pets/1", [(name, "GET")])).status == 405
        assert (await shop.ask("GET", "/v1/pets?_method=DELETE")).code == "invalid_parameter"
        assert shop.pets() == before


_UNKNOWN = [
    "/v1", "/v1/", "/v1/pets/", "/v1//pets", "/v1/pets//", "/v1/pets//1",
    "/v1/pets/1/", "/v1/pets/1/2", "/v1/Pets", "/v1/PETS", "/v1/pet", "/v1/petss", "/v1/pets%2F1",
    "/v1/pets%2f", "/v1/%70ets", "/v1/pets%20", "/v1/pets%00", "/v1/./pets", "/v1/../v1/pets",
    "/v1/pets/..", "/v1/pets/../pets", "/v1/pets/.", "/v1/%2e%2e/v1/pets", "/v1/pets;a=b", "/v1/pets\\1",
    "/v1/pets.json", "/v1/v1/pets", "/v1/store/orders/", "/v1/store/orders/1/", "/v1/store", "/v1/metrics",
    "/v1/healthz", "/v1/openapi.json", "/v1/*", "/v1/{petId}", "/v1/pets/{petId}/x", "/v1/%00",
    "/v1/%ff%fe", "/v1/é", "/v1/" + "a/" * 2_000, "/v1/categories/", "/v1/keys", "/v1/events",
]  # fmt: skip


class TestPath404:
    """Paths match exactly on their raw bytes; there is no redirect."""

    @pytest.mark.parametrize("path", _UNKNOWN)
    async def test_unknown(self, shop: CheckedShop, path: str) -> None:
        """404 `not_found`, and no Location; 401 without a key: authentication comes before routing."""
        assert (await shop.call("GET", path)).status == 401
        answer = await shop.ask("GET", path)
        assert (answer.status, answer.code) == (404, "not_found")
        assert "location" not in answer.headers

    @pytest.mark.parametrize(
        "path", ["/V1/pets", "//v1/pets", "/v1pets", "/pets", "/v2/pets", "/v1%2Fpets", "/./v1/pets"]
    )
    async def test_outside_the_interface(self, shop: CheckedShop, path: str) -> None:
        """What does not begin with /v1/ is the site's 404, with the Error body and without limits."""
        answer = await shop.ask("GET", path)
        assert (answer.status, answer.code) == (404, "not_found")
        assert "x-ratelimit-limit" not in answer.headers
