"""Credentials that are none: 401 with one message and the challenge, and nothing changed (I12, I13)."""

from __future__ import annotations

import hashlib

import pytest

from petstore.core.keys import mint
from tests.api.checks import CheckedShop

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def shop(shared_shop: CheckedShop) -> CheckedShop:
    """No request of these tests changes anything."""
    return shared_shop


MESSAGE = "The API key is missing or invalid; send it as 'Authorization: Bearer <API_KEY>'."
# `{key}` stands for a valid key, `{wrong}` for one with a wrong checksum, `{unknown}` for nobody's.
_VALUES = [
    "", "Bearer", "Bearer ", " ", "{key}", "Basic {key}", "Basic dXNlcjpwYXNz", "Digest username=x",
    "Token {key}", "ApiKey {key}", "Bearer{key}", "Bearer: {key}", "Bearer={key}", "Bearer\t{key}",
    "Bearer {key}, Bearer {key}", "Bearer {key},", "Bearer {key} {key}", 'Bearer "{key}"', "Bearer {key};x=1",
    "Bearer {key}\x00", "Bearer \x00{key}", "Bearer {key}\t", "Bearer {key}\n", "Bearer \xa0{key}",
    "Bearer é{key}", "Bearer {key}ð\x9f\x98\x80", "Bëarer {key}", "Bearer " + "\xff" * 48, "Bearer {wrong}",
    "Bearer {short}", "Bearer {key}x", "Bearer {upper}", "Bearer {swapped}", "Bearer {unknown}",
    "Bearer pets_test_", "Bearer pets_prod_{tail}", "Bearer {tail}", "Bearer %70ets{rest}",
    "Bearer " + "a" * 9_000, "Bearer ' OR 1=1 --", "Bearer {digest}", "Bearer *", "Bearer null",
    "Bearer Bearer {key}",
]  # fmt: skip


def value_of(template: str, key: str) -> str:
    """A row's header for the key of this shop."""
    known = {
        "key": key,
        "wrong": key[:-1] + ("A" if key[-1] != "A" else "B"),
        "short": key[:-1],
        "upper": key.upper(),
        "swapped": key.swapcase(),
        "unknown": mint("test"),
        "tail": key[10:],
        "rest": key[4:],
        "digest": hashlib.sha256(key.encode()).hexdigest(),
    }
    for name, text in known.items():
        template = template.replace("{" + name + "}", text)
    return template


class TestCredential401:
    """A credential was sent, and it is no key."""

    @pytest.mark.parametrize("template", _VALUES)
    async def test_one_message_for_all(self, shop: CheckedShop, template: str) -> None:
        """The answer says nothing about how close the guess was."""
        before = shop.fingerprint()
        answer = await shop.call("GET", "/v1/pets", [("authorization", value_of(template, shop.key))])
        assert (answer.status, answer.code) == (401, "unauthorized")
        assert answer.json()["message"] == MESSAGE
        assert answer.headers["www-authenticate"] == 'Bearer realm="petstore", error="invalid_token"'
        assert answer.headers["x-ratelimit-limit"] == "600"
        assert shop.fingerprint() == before

    @pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "FOO"])
    @pytest.mark.parametrize("path", ["/v1/pets", "/v1/pets/1", "/v1/nothing", "/v1"])
    async def test_on_every_path_and_method(self, shop: CheckedShop, method: str, path: str) -> None:
        """Authentication comes before routing."""
        answer = await shop.call(method, path, [("authorization", "Bearer x")])
        assert answer.status == 401

    async def test_two_headers(self, shop: CheckedShop) -> None:
        """Two Authorization headers are refused, even when both hold the valid key."""
        valid = ("authorization", f"Bearer {shop.key}")
        for pair in ([valid, valid], [valid, ("authorization", "")], [("authorization", "Bearer x"), valid]):
            answer = await shop.call("GET", "/v1/pets", pair)
            assert (answer.status, answer.json()["message"]) == (401, MESSAGE)


class TestMissing401:
    """No credential: the challenge names no error."""

    @pytest.mark.parametrize(
        ("target", "headers"),
        [
            ("/v1/pets", []),
            ("/v1/pets?access_token={key}", []),
            ("/v1/pets?api_key={key}&key={key}&authorization=Bearer%20{key}", []),
            ("/v1/pets", [("cookie", "authorization=Bearer {key}; api_key={key}")]),
            ("/v1/pets", [("x-api-key", "{key}")]),
            ("/v1/pets", [("proxy-authorization", "Bearer {key}")]),
            ("/v1/pets", [("x-authorization", "Bearer {key}")]),
            ("/v1/pets", [("x-forwarded-authorization", "Bearer {key}")]),
            ("/v1/pets", [("authorization ", "Bearer {key}")]),
        ],
        ids=[
            "nothing", "query", "other queries", "cookie", "x-api-key", "proxy", "x-", "forwarded",
            "name with space",
        ],
    )  # fmt: skip
    async def test_a_key_elsewhere_is_no_key(
        self, shop: CheckedShop, target: str, headers: list[tuple[str, str]]
    ) -> None:
        """Only the Authorization header is looked at."""
        sent = [(name, value.replace("{key}", shop.key)) for name, value in headers]
        answer = await shop.call("GET", target.replace("{key}", shop.key), sent)
        assert (answer.status, answer.code) == (401, "unauthorized")
        assert answer.json()["message"] == MESSAGE
        assert answer.headers["www-authenticate"] == 'Bearer realm="petstore"'

    async def test_a_key_in_the_body_is_no_key(self, shop: CheckedShop) -> None:
        """The body is not looked at before authentication."""
        body = f'{{"name":"n","categoryId":1,"access_token":"{shop.key}"}}'.encode()
        assert (
            await shop.call("POST", "/v1/pets", [("content-type", "application/json")], body)
        ).status == 401


class TestAccepted200:
    """What RFC 9110 lets a client write."""

    @pytest.mark.parametrize(
        "template",
        ["Bearer {key}", "bearer {key}", "BEARER {key}", "bEaReR {key}", "Bearer   {key}", "Bearer {key} "],
    )
    async def test_the_scheme_is_case_insensitive(self, shop: CheckedShop, template: str) -> None:
        """And spaces around the key are no part of it."""
        answer = await shop.call("GET", "/v1/pets", [("authorization", value_of(template, shop.key))])
        assert answer.status == 200
        assert "www-authenticate" not in answer.headers
