"""POST /pets: what is stored and answered. What is refused: refusals.py."""

from __future__ import annotations

import pytest

from tests.support.cases import every_case
from tests.support.service import Shop


class TestCreatePet201:
    """An animal that was added."""

    async def test_the_answer_is_the_animal_with_its_identifier(self, shop: Shop) -> None:
        """Every member of the Pet, as bytes, in the documented order; and where it is."""
        answer = await shop.post({"categoryId": 9, "name": "Rex"})
        assert answer.status == 201
        assert answer.body == b'{"id":1,"name":"Rex","categoryId":9,"status":"available"}'
        assert answer.headers["location"] == "/v1/pets/1"
        assert "idempotency-replayed" not in answer.headers

    @every_case("number", [0, 1, -1, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 10**18])
    async def test_category_comes_back_digit_for_digit(self, shop: Shop, number: int) -> None:
        """Any int64, in the 201 and in the list."""
        created = await shop.post({"name": "Rex", "categoryId": number})
        assert f'"categoryId":{number},'.encode() in created.body
        assert f'"categoryId":{number},'.encode() in (await shop.ask("GET", "/v1/pets")).body

    @every_case(
        "name",
        [
            "a", "n" * 255, "😀" * 255, "é", "e\u0301", "ﬁ", " padded ", "\u00a0x\u00a0", "\u200b",
            "\ufeffRex", "\u202eRex", "\U0010ffff", "\ufffe\uffff", "\xa0\xad", "x\u2028y\u2029z",
            "'; DROP TABLE pets; --", "<script>alert(1)</script>", "${jndi:ldap://x}", "../../etc/passwd",
            "%s%n%00", '"\\/', "null", '"name"', '{"categoryId":1}', "=cmd|' /C calc'!A0", "رِكس",
        ],
    )  # fmt: skip
    async def test_a_name_is_kept_exactly(self, shop: Shop, name: str) -> None:
        """Stored and returned as it was sent: not trimmed, not normalised, not interpreted."""
        created = await shop.post({"name": name, "categoryId": 1})
        assert (created.status, created.json()["name"]) == (201, name)
        [listed] = (await shop.ask("GET", f"/v1/pets?id={created.json()['id']}")).json()
        assert listed == created.json()
        assert shop.pets()[-1] == (listed["id"], name, 1, "available")

    @pytest.mark.parametrize(
        "body",
        [
            ' \t\r\n{ "name" : "😀" ,\n"categoryId":0 } \n'.encode(),
            r'{"n\u0061me":"😀","c\u0061tegoryId":0}'.encode(),
            rb'{"name":"\ud83d\ude00","categoryId":0,"status":"av\u0061ilable"}',
            '{"status":"available","categoryId":-0,"name":"😀"}'.encode(),
        ],
        ids=["spaces", "escaped member", "escaped value", "any order, minus zero"],
    )
    async def test_json_may_be_written_in_any_way(self, shop: Shop, body: bytes) -> None:
        """White space, escapes, also of a pair of surrogates, order and `-0` are JSON's freedom."""
        answer = await shop.post(None, body=body)
        assert answer.json() == {"id": 1, "name": "😀", "categoryId": 0, "status": "available"}

    @every_case(
        "media_type",
        [
            "application/json", "APPLICATION/JSON", "application/json;charset=utf-8",
            "application/json; charset=UTF-8", 'application/json ; charset="utf-8"', "application/json;",
            "application/json; charset=utf8", "application/json; profile=x", "application/json;;q=1 ; a = b",
            'application/json; a="; charset=latin1"; b="\\"; charset=latin1"; charset=utf-8',
        ],
    )  # fmt: skip
    async def test_every_spelling_of_the_json_media_type_is_taken(self, shop: Shop, media_type: str) -> None:
        """JSON, with the only charset that it can have or none, whatever the other parameters; `identity` is
        no encoding."""
        headers = [("authorization", f"Bearer {shop.key}"), ("content-encoding", "Identity")]
        headers.append(("content-type", media_type))
        assert (await shop.call("POST", "/v1/pets", headers, b'{"name":"n","categoryId":1}')).status == 201


async def test_the_host_header_is_never_reflected(shop: Shop) -> None:
    """A foreign Host reaches no reference."""
    answer = await shop.post({"name": "n", "categoryId": 1}, [("host", "evil.example")])
    assert answer.headers["location"] == "/v1/pets/1"
    assert "evil" not in str(answer.raw_headers)
