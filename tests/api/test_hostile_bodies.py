"""Bodies of createPet and updatePet that are refused: each row says with what; nothing changes (I12, I13)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.checks import CheckedShop, Writing

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON, BODY = "invalid_json", "invalid_body"
_INT = "categoryId: expected an integer"
_RANGE = "categoryId: expected an integer from -9223372036854775808 to 9223372036854775807"
_STATUS = "status: expected one of available, pending, sold"
_CONTROL = "name: control characters"


def with_name(literal: bytes) -> bytes:
    return b'{"name":' + literal + b',"categoryId":1}'


def with_category(literal: bytes) -> bytes:
    return b'{"name":"Rex","categoryId":' + literal + b"}"


def with_status(literal: bytes) -> bytes:
    return b'{"name":"Rex","categoryId":1,"status":' + literal + b"}"


def named(name: str) -> bytes:
    return json.dumps({"name": name, "categoryId": 1}, ensure_ascii=False).encode()


GOOD = with_category(b"1")

# fragment of the message -> bodies
_NOT_JSON: dict[str, list[bytes]] = {
    "empty": [b""],
    "": [
        b" ", b"\n", b"\x00", b"hello", b"name=Rex&categoryId=1", b"<pet><name>Rex</name></pet>",
        b"name: Rex\ncategoryId: 1", b"\x82\xa4name\xa3Rex\xaacategoryId\x01",
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00",
        b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nRex\r\n--x--', b"{", b"}", b"[", b'"',
        b'{"na', b'{"name"', b'{"name":', b'{"name":"Re', b'{"name":"Rex",', GOOD[:-1], b'{"name":"\\',
        b'{"name":"\\u00', b'{"name":"Rex","categoryId":-', b'{"name":"Rex","categoryId":tru', GOOD + GOOD,
        rb'{"name":"\u0041","categoryId":NaN}',
        GOOD + b"\n" + GOOD, GOOD + b"x", GOOD + b"}", GOOD + b",", GOOD + b"\x00", GOOD + b"\x0c",
        b"\xc2\xa0" + GOOD, b"\x0b" + GOOD, b"\xef\xbb\xbf" + GOOD, b"\xef\xbb\xbf",
        GOOD.decode().encode("utf-16"), GOOD.decode().encode("utf-16-le"),
        GOOD.decode().encode("utf-16-be"), GOOD.decode().encode("utf-32"), b"\xff" + GOOD,
        b'{"na\nme":"Rex","categoryId":1}', b"{'name':'Rex','categoryId':1}",
        b'{name:"Rex","categoryId":1}', b'{1:"Rex","categoryId":1}', b'{"name":"Rex" "categoryId":1}',
        b'{"name" "Rex","categoryId":1}', b'{"name":"Rex",,"categoryId":1}',
        b'{,"name":"Rex","categoryId":1}', b'{"name":"Rex","categoryId":1,}', b"[1,]",
        b'{"name"::"Rex","categoryId":1}', b'{"name":"Rex";"categoryId":1}', b'{"name":,"categoryId":1}',
        b'{"name":"Rex","categoryId":1]', b'{"name":"Rex",/* c */"categoryId":1}', GOOD + b" // c",
        b"# c\n" + GOOD, b'{"name":"Rex","categoryId":1,"x":01}', b'{"name":1,"categoryId":',
        b'{"x":1,"name":"Rex","categoryId":1', b"callback(" + GOOD + b")", b")]}'," + GOOD,
        *map(with_name, [
            b'"a\x00b"', b'"a\nb"', b'"a\tb"', b'"\x1b[31m"', b'"a\x1f"', rb'"\x41"', rb'"\'"', rb'"\0"',
            rb'"\U0041"', rb'"\u12"', rb'"\u00g1"', b'"\\\n"',
        ]),
        *map(with_category, [
            b"01", b"-01", b"+1", b"0x1", b"0o17", b"1_0", b"-", b"--1", b"- 1", b".5", b"1.", b"1e",
            b"1e+", b"1.2.3", b"NaN", b"Infinity", b"-Infinity", "１".encode(), b"True", b"None", b"nul",  # noqa: RUF001
            b"undefined",
        ]),
        with_status(b"sold"),
    ],
    "UTF-8": [
        b'{"\xff":1,"name":"Rex","categoryId":1}',
        *map(with_name, [
            b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\x80"', b'"\xf0\x9f\x98"',
        ]),
        with_status(b'"\xff"'),
        named("é").decode().encode("latin-1"),
    ],
    "nested too deeply": [
        b"[" * 65_536, b"[" * 32_768 + b"]" * 32_768, b'{"a":' * 13_000,
        b'{"name":' * 6_000 + b"1" + b"}" * 6_000,
        b'{"name":"Rex","categoryId":1,"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}", b'[{"":' * 13_000,
    ],
}  # fmt: skip

_NOT_AN_ANIMAL: dict[str, list[bytes]] = {
    "Expected an object, got null": [b"null"],
    "Expected an object, got a boolean": [b"true", b" false "],
    "Expected an object, got an integer": [b"1", b"9" * 5_000],
    "Expected an object, got a number": [b"1.5e3"],
    "Expected an object, got a string": [b'"Rex"', b'""'],
    "Expected an object, got an array": [b"[]", b"[" + GOOD + b"]", b"[" * 100 + b"]" * 100],
    "id: assigned by the service": [
        b'{"id":1,"name":"Rex","categoryId":1}', b'{"id":null,"name":"Rex","categoryId":1}',
    ],
    "'tag': not a member": [b'{"name":"Rex","categoryId":1,"tag":"x"}'],
    "'': not a member": [b'{"name":"Rex","categoryId":1,"":1}'],
    "'Name': not a member": [b'{"Name":"Rex","categoryId":1}'],
    "'category_id': not a member": [b'{"name":"Rex","category_id":1}'],
    "'name ': not a member": [b'{"name ":"Rex","categoryId":1}'],
    r"'name\x00': not a member": [rb'{"name\u0000":"Rex","categoryId":1}'],
    r"'a\r\nb': not a member": [rb'{"a\r\nb":1,"name":"Rex","categoryId":1}'],
    "not a member": [
        '{"nаme":"Rex","categoryId":1}'.encode(),  # noqa: RUF001
        b'{"' + b"x" * 60_000 + b'":1,"name":"Rex","categoryId":1}',
        rb'{"\ud800":1,"name":"Rex","categoryId":1}',
    ],
    "'__proto__': not a member": [b'{"__proto__":{"id":9},"name":"Rex","categoryId":1}'],
    "name: sent more than once": [
        b'{"name":"a","name":"b","categoryId":1}', b'{"name":"a","name":"a","categoryId":1}',
        rb'{"n\u0061me":"a","name":"b","categoryId":1}',
        rb'{"n\u0061me":"a","\u006eame":"b","categoryId":1}', b'{"name":1,"name":"a","categoryId":1}',
        b'{"name":"a","name":1,"categoryId":1}',
    ],
    "categoryId: sent more than once": [
        b'{"name":"a","categoryId":1,"categoryId":1}', rb'{"name":"a","categoryId":1,"c\u0061tegoryId":2}',
    ],
    "status: sent more than once": [b'{"name":"a","categoryId":1,"status":"sold","status":"sold"}'],
    "'x': sent more than once": [b'{"x":1,"x":1,"name":"a","categoryId":1}'],
    "name: expected a string, got null": [with_name(b"null")],
    "name: expected a string, got an integer": [with_name(b"1")],
    "name: expected a string, got a boolean": [with_name(b"true")],
    "name: expected a string, got an array": [with_name(b'["Rex"]')],
    "name: expected a string, got an object": [with_name(b'{"en":"Rex"}')],
    "name: expected 1 to 255 characters, got 0": [with_name(b'""')],
    "name: expected 1 to 255 characters, got 256": [named("n" * 256), named("😀" * 256)],
    "got 256": [with_name(b'"' + rb"\u0041" * 256 + b'"')],
    "got 60000": [named("n" * 60_000)],
    "name: expected at least one character that is not white space": [named(" ")],
    "not white space": [named("\u2003\u3000\u00a0\u2028")],
    "name: ": [with_name(rb'"\t"')],
    _CONTROL: [
        *map(with_name, [
            rb'"a\u0000b"', '"a\x9b31m"'.encode(), rb'"a\u0085b"', rb'"a\r\nSet-Cookie: x"', rb'"a\n"',
            rb'"\u001b[31mRex"', rb'"a\u001f"', b'"a\x7f"', rb'"a\u007f"', b'"a\xc2\x85"', rb'"a\u009b"',
            rb'"a\b"',
        ]),
    ],
    "name: lone surrogates": [
        rb'{"categoryId":"1","name":"\ud800"}',
        *map(with_name, [
            rb'"\ud800"', rb'"\udc00"', rb'"\ude00\ud83d"', rb'"\ud83d\ud83d"', rb'"a\ud800b"',
        ]),
    ],
    f"{_INT}, got null": [with_category(b"null")],
    f"{_INT}, got a string": [with_category(b'"1"')],
    f"{_INT}, got a boolean": [with_category(b"true"), with_category(b"false")],
    f"{_INT}, got an array": [with_category(b"[1]")],
    f"{_INT}, got an object": [with_category(b"{}")],
    f"{_INT}, got a number with a fraction": [
        *map(with_category, [
            b"1.0", b"1e3", b"1E0", b"-0.0", b"1.5", b"1e400", b"-1e-400", b"0." + b"1" * 5_000,
            b"1e" + b"9" * 5_000,
        ]),
    ],
    _RANGE: [
        *map(with_category, [
            b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616",
            b"18446744073709551615", b"1" + b"0" * 19, b"1" + b"0" * 20, b"1" * 4_301, b"9" * 5_000,
            b"-" + b"9" * 5_000, b"1" * 60_000,
        ]),
    ],
    "status: expected a string, got null": [with_status(b"null")],
    "status: expected a string, got an integer": [with_status(b"1")],
    "status: expected a string, got an array": [with_status(b'["sold"]')],
    _STATUS: [
        *map(with_status, [
            b'""', b'"SOLD"', b'"sold "', b'"lost"', rb'"sold\u0000"', rb'"\ud800"',
            b'"' + b"s" * 60_000 + b'"',
        ]),
    ],
    "'x9': not a member": [
        b'{"name":"Rex","categoryId":1,' + b",".join(b'"x%d":1' % n for n in range(100)) + b"}",
    ],
}  # fmt: skip

_ALL = b'{"id":1,"name":"","categoryId":1.0,"status":"x","y":1}'
_ALL_FAULTS = (
    "id: assigned by the service, do not send it; 'y': not a member of {noun};"
    " name: expected 1 to 255 characters, got 0; categoryId: expected an integer,"
    " got a number with a fraction or an exponent; status: expected one of"
)
_NOT_A_NEW_ANIMAL: dict[str, list[bytes]] = {
    "name: required; categoryId: required": [b"{}", b'{"status":"sold"}'],
    "name: required": [b'{"categoryId":1}'],
    "categoryId: required": [b'{"name":"Rex"}'],
    _ALL_FAULTS.format(noun="a new animal"): [_ALL],
}
_NOT_A_CHANGE: dict[str, list[bytes]] = {
    "Send at least one of name, categoryId, status.": [b"{}", b" {\n} "],
    "'petId': not a member of a change of an animal.": [b'{"petId":2}'],
    "name: expected a string, got null.": [b'{"name":null}'],
    _ALL_FAULTS.format(noun="a change of an animal"): [_ALL],
}


def rows(table: dict[str, list[bytes]]) -> list[Any]:
    """(body, fragment) of each body, named by its beginning."""
    return [
        pytest.param(body, fragment, id=ascii(body)[:60])
        for fragment, bodies in table.items()
        for body in bodies
    ]


@pytest.fixture
def shop(shared_shop: CheckedShop) -> CheckedShop:
    """What is refused changes nothing, and each test looks at that."""
    return shared_shop


@pytest.fixture
def writing(shared_writing: Writing) -> Writing:
    return shared_writing


async def refused(writing: Writing, body: bytes, code: str, fragment: str) -> str:
    """The message of a 400 that changed nothing."""
    before = writing.shop.fingerprint()
    answer = await writing.send_json(body)
    assert (answer.status, answer.code) == (400, code)
    message: str = answer.json()["message"]
    assert fragment in message
    assert len(message) < 1_000
    assert "location" not in answer.headers
    assert writing.shop.fingerprint() == before
    return message


class TestNotJson400:
    """Bodies that are not one well-formed JSON document in UTF-8."""

    @pytest.mark.parametrize(("body", "fragment"), rows(_NOT_JSON))
    async def test_refused(self, writing: Writing, body: bytes, fragment: str) -> None:
        """400 `invalid_json`, whatever else would be wrong with it."""
        message = await refused(writing, body, JSON, fragment)
        assert message.startswith("The body is ")

    async def test_a_thousand_ways_to_break_one(self, writing: Writing) -> None:
        """Every single byte replaced or left out: an answer of the contract, never a 500."""
        body = b'{"name":"R\\u0065x","categoryId":-12,"status":"sold"}'
        for place in range(len(body)):
            for byte in (b"", b"\x00", b'"', b"\\", b"{", b"}", b",", b"\xff", b"e", b"9"):
                answer = await writing.send_json(body[:place] + byte + body[place + 1 :])
                assert answer.status in (writing.status, 400)


class TestNotAnAnimal400:
    """JSON that is no animal to add and no change of one."""

    @pytest.mark.parametrize(("body", "fragment"), rows(_NOT_AN_ANIMAL))
    async def test_refused(self, writing: Writing, body: bytes, fragment: str) -> None:
        """400 `invalid_body`, and the message names every member at fault."""
        await refused(writing, body, BODY, fragment)

    @pytest.mark.parametrize(("body", "fragment"), rows(_NOT_A_NEW_ANIMAL))
    async def test_not_a_new_one(self, shop: CheckedShop, body: bytes, fragment: str) -> None:
        """What POST needs, and its noun."""
        await refused(Writing(shop, "createPet"), body, BODY, fragment)

    @pytest.mark.parametrize(("body", "fragment"), rows(_NOT_A_CHANGE))
    async def test_not_a_change(self, shop: CheckedShop, body: bytes, fragment: str) -> None:
        """At least one member; an explicit null removes nothing. Whether there is the animal comes later."""
        await refused(Writing(shop, "updatePet"), body, BODY, fragment)

    async def test_the_message_stays_short(self, writing: Writing) -> None:
        """However much is wrong: the document bounds it, and every answer is held to the document."""
        unknown = {chr(0x1F400 + number) * 99: None for number in range(20)}
        body = json.dumps({**unknown, "name": 1, "categoryId": 2**70, "status": "x" * 9_999}).encode()
        assert 700 < len((await writing.send_json(body)).json()["message"]) < 2_000
