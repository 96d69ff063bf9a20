"""Bodies of POST /pets that are refused: each row says with what, and nothing has changed (I12, I13)."""

from __future__ import annotations

import json

import pytest

from tests.api.checks import CheckedShop

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

# id -> (body, code, fragment of the message)
_NOT_JSON: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "space": (b" ", ""),
    "newline": (b"\n", ""),
    "NUL": (b"\x00", ""),
    "text": (b"hello", ""),
    "form": (b"name=Rex&categoryId=1", ""),
    "xml": (b"<pet><name>Rex</name></pet>", ""),
    "yaml": (b"name: Rex\ncategoryId: 1", ""),
    "msgpack": (b"\x82\xa4name\xa3Rex\xaacategoryId\x01", ""),
    "gzip": (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", ""),
    "multipart": (b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\nRex\r\n--x--', ""),
    "open brace": (b"{", ""),
    "close brace": (b"}", ""),
    "open bracket": (b"[", ""),
    "open string": (b'"', ""),
    "cut in a member": (b'{"na', ""),
    "cut after a member": (b'{"name"', ""),
    "cut after a colon": (b'{"name":', ""),
    "cut in a value": (b'{"name":"Re', ""),
    "cut after a comma": (b'{"name":"Rex",', ""),
    "cut before the end": (GOOD[:-1], ""),
    "cut in an escape": (b'{"name":"\\', ""),
    "cut in a unicode escape": (b'{"name":"\\u00', ""),
    "cut in a number": (b'{"name":"Rex","categoryId":-', ""),
    "cut in a literal": (b'{"name":"Rex","categoryId":tru', ""),
    "two documents": (GOOD + GOOD, ""),
    "lines": (GOOD + b"\n" + GOOD, ""),
    "text behind": (GOOD + b"x", ""),
    "brace behind": (GOOD + b"}", ""),
    "comma behind": (GOOD + b",", ""),
    "NUL behind": (GOOD + b"\x00", ""),
    "form feed behind": (GOOD + b"\x0c", ""),
    "no-break space before": (b"\xc2\xa0" + GOOD, ""),
    "vertical tab before": (b"\x0b" + GOOD, ""),
    "BOM": (b"\xef\xbb\xbf" + GOOD, ""),
    "BOM alone": (b"\xef\xbb\xbf", ""),
    "UTF-16 with BOM": (GOOD.decode().encode("utf-16"), ""),
    "UTF-16LE": (GOOD.decode().encode("utf-16-le"), ""),
    "UTF-16BE": (GOOD.decode().encode("utf-16-be"), ""),
    "UTF-32": (GOOD.decode().encode("utf-32"), ""),
    "latin-1": (named("é").decode().encode("latin-1"), "UTF-8"),
    "overlong": (with_name(b'"\xc0\x80"'), "UTF-8"),
    "CESU surrogate": (with_name(b'"\xed\xa0\x80"'), "UTF-8"),
    "beyond Unicode": (with_name(b'"\xf4\x90\x80\x80"'), "UTF-8"),
    "lone continuation": (with_name(b'"\x80"'), "UTF-8"),
    "truncated character": (with_name(b'"\xf0\x9f\x98"'), "UTF-8"),
    "bad UTF-8 in a member": (b'{"\xff":1,"name":"Rex","categoryId":1}', "UTF-8"),
    "bad UTF-8 in a status": (with_status(b'"\xff"'), "UTF-8"),
    "bad UTF-8 outside": (b"\xff" + GOOD, ""),
    "raw NUL": (with_name(b'"a\x00b"'), ""),
    "raw newline": (with_name(b'"a\nb"'), ""),
    "raw tab": (with_name(b'"a\tb"'), ""),
    "raw ESC": (with_name(b'"\x1b[31m"'), ""),
    "raw unit separator": (with_name(b'"a\x1f"'), ""),
    "raw control in a member": (b'{"na\nme":"Rex","categoryId":1}', ""),
    "escape x": (with_name(rb'"\x41"'), ""),
    "escape quote": (with_name(rb'"\'"'), ""),
    "escape 0": (with_name(rb'"\0"'), ""),
    "escape U": (with_name(rb'"\U0041"'), ""),
    "escape short": (with_name(rb'"\u12"'), ""),
    "escape not hex": (with_name(rb'"\u00g1"'), ""),
    "escape newline": (with_name(b'"\\\n"'), ""),
    "single quotes": (b"{'name':'Rex','categoryId':1}", ""),
    "bare member": (b'{name:"Rex","categoryId":1}', ""),
    "number as member": (b'{1:"Rex","categoryId":1}', ""),
    "missing comma": (b'{"name":"Rex" "categoryId":1}', ""),
    "missing colon": (b'{"name" "Rex","categoryId":1}', ""),
    "double comma": (b'{"name":"Rex",,"categoryId":1}', ""),
    "leading comma": (b'{,"name":"Rex","categoryId":1}', ""),
    "trailing comma": (b'{"name":"Rex","categoryId":1,}', ""),
    "trailing comma in an array": (b"[1,]", ""),
    "double colon": (b'{"name"::"Rex","categoryId":1}', ""),
    "semicolon": (b'{"name":"Rex";"categoryId":1}', ""),
    "missing value": (b'{"name":,"categoryId":1}', ""),
    "bracket for brace": (b'{"name":"Rex","categoryId":1]', ""),
    "comment": (b'{"name":"Rex",/* c */"categoryId":1}', ""),
    "line comment": (GOOD + b" // c", ""),
    "hash comment": (b"# c\n" + GOOD, ""),
    "leading zero": (with_category(b"01"), ""),
    "minus leading zero": (with_category(b"-01"), ""),
    "plus": (with_category(b"+1"), ""),
    "hex": (with_category(b"0x1"), ""),
    "octal": (with_category(b"0o17"), ""),
    "underscore": (with_category(b"1_0"), ""),
    "minus alone": (with_category(b"-"), ""),
    "double minus": (with_category(b"--1"), ""),
    "minus space": (with_category(b"- 1"), ""),
    "bare fraction": (with_category(b".5"), ""),
    "no fraction": (with_category(b"1."), ""),
    "no exponent": (with_category(b"1e"), ""),
    "exponent sign alone": (with_category(b"1e+"), ""),
    "double point": (with_category(b"1.2.3"), ""),
    "NaN": (with_category(b"NaN"), ""),
    "Infinity": (with_category(b"Infinity"), ""),
    "-Infinity": (with_category(b"-Infinity"), ""),
    "full-width digit": (with_category("１".encode()), ""),  # noqa: RUF001
    "True": (with_category(b"True"), ""),
    "None": (with_category(b"None"), ""),
    "nul": (with_category(b"nul"), ""),
    "undefined": (with_category(b"undefined"), ""),
    "unquoted status": (with_status(b"sold"), ""),
    "bad number in an unknown member": (b'{"name":"Rex","categoryId":1,"x":01}', ""),
    "bad JSON behind a wrong type": (b'{"name":1,"categoryId":', ""),
    "bad JSON behind an unknown member": (b'{"x":1,"name":"Rex","categoryId":1', ""),
    "prototype of JSONP": (b"callback(" + GOOD + b")", ""),
    "guard against hijacking": (b")]}'," + GOOD, ""),
    "65536 brackets": (b"[" * 65_536, "nested too deeply"),
    "32768 brackets, closed": (b"[" * 32_768 + b"]" * 32_768, "nested too deeply"),
    "objects": (b'{"a":' * 13_000, "nested too deeply"),
    "objects in name": (b'{"name":' * 6_000 + b"1" + b"}" * 6_000, "nested too deeply"),
    "deep unknown member": (
        b'{"name":"Rex","categoryId":1,"x":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        "nested too deeply",
    ),
    "mixed depth": (b'[{"":' * 13_000, "nested too deeply"),
}

_NOT_AN_ANIMAL: dict[str, tuple[bytes, str]] = {
    "null": (b"null", "Expected an object, got null"),
    "true": (b"true", "Expected an object, got a boolean"),
    "false": (b" false ", "Expected an object, got a boolean"),
    "integer": (b"1", "Expected an object, got an integer"),
    "huge integer": (b"9" * 5_000, "Expected an object, got an integer"),
    "number": (b"1.5e3", "Expected an object, got a number"),
    "string": (b'"Rex"', "Expected an object, got a string"),
    "empty string": (b'""', "Expected an object, got a string"),
    "array": (b"[]", "Expected an object, got an array"),
    "array of animals": (b"[" + GOOD + b"]", "Expected an object, got an array"),
    "deep but finite": (b"[" * 100 + b"]" * 100, "Expected an object, got an array"),
    "empty object": (b"{}", "name: required; categoryId: required"),
    "name missing": (b'{"categoryId":1}', "name: required"),
    "category missing": (b'{"name":"Rex"}', "categoryId: required"),
    "status alone": (b'{"status":"sold"}', "name: required; categoryId: required"),
    "id": (b'{"id":1,"name":"Rex","categoryId":1}', "id: assigned by the service"),
    "id null": (b'{"id":null,"name":"Rex","categoryId":1}', "id: assigned by the service"),
    "unknown member": (b'{"name":"Rex","categoryId":1,"tag":"x"}', "'tag': not a member"),
    "empty member": (b'{"name":"Rex","categoryId":1,"":1}', "'': not a member"),
    "other case": (b'{"Name":"Rex","categoryId":1}', "'Name': not a member"),
    "snake case": (b'{"name":"Rex","category_id":1}', "'category_id': not a member"),
    "member with space": (b'{"name ":"Rex","categoryId":1}', "'name ': not a member"),
    "member with NUL": (rb'{"name\u0000":"Rex","categoryId":1}', r"'name\x00': not a member"),
    "member with CRLF": (rb'{"a\r\nb":1,"name":"Rex","categoryId":1}', r"'a\r\nb': not a member"),
    "member in another script": ('{"nаme":"Rex","categoryId":1}'.encode(), "not a member"),  # noqa: RUF001
    "long member": (b'{"' + b"x" * 60_000 + b'":1,"name":"Rex","categoryId":1}', "not a member"),
    "prototype": (b'{"__proto__":{"id":9},"name":"Rex","categoryId":1}', "'__proto__': not a member"),
    "doubled name": (b'{"name":"a","name":"b","categoryId":1}', "name: sent more than once"),
    "doubled name, alike": (b'{"name":"a","name":"a","categoryId":1}', "name: sent more than once"),
    "doubled name, escaped": (rb'{"n\u0061me":"a","name":"b","categoryId":1}', "name: sent more than once"),
    "doubled name, both escaped": (
        rb'{"n\u0061me":"a","\u006eame":"b","categoryId":1}',
        "name: sent more than once",
    ),
    "doubled category": (b'{"name":"a","categoryId":1,"categoryId":1}', "categoryId: sent more than once"),
    "doubled category, escaped": (
        rb'{"name":"a","categoryId":1,"c\u0061tegoryId":2}',
        "categoryId: sent more than once",
    ),
    "doubled status": (
        b'{"name":"a","categoryId":1,"status":"sold","status":"sold"}',
        "status: sent more than once",
    ),
    "doubled, first one wrong": (b'{"name":1,"name":"a","categoryId":1}', "name: sent more than once"),
    "doubled, last one wrong": (b'{"name":"a","name":1,"categoryId":1}', "name: sent more than once"),
    "doubled unknown": (b'{"x":1,"x":1,"name":"a","categoryId":1}', "'x': sent more than once"),
    "name null": (with_name(b"null"), "name: expected a string, got null"),
    "name number": (with_name(b"1"), "name: expected a string, got an integer"),
    "name boolean": (with_name(b"true"), "name: expected a string, got a boolean"),
    "name array": (with_name(b'["Rex"]'), "name: expected a string, got an array"),
    "name object": (with_name(b'{"en":"Rex"}'), "name: expected a string, got an object"),
    "name empty": (with_name(b'""'), "name: expected 1 to 255 characters, got 0"),
    "name 256": (named("n" * 256), "name: expected 1 to 255 characters, got 256"),
    "name 256 beyond the first plane": (named("😀" * 256), "name: expected 1 to 255 characters, got 256"),
    "name 256 escaped": (with_name(b'"' + rb"\u0041" * 256 + b'"'), "got 256"),
    "name 60000": (named("n" * 60_000), "got 60000"),
    "name blank": (named(" "), "name: expected at least one character that is not white space"),
    "name of spaces": (named("\u2003\u3000\u00a0\u2028"), "not white space"),
    "name tab": (with_name(rb'"\t"'), "name: "),
    "name NUL": (with_name(rb'"a\u0000b"'), _CONTROL),
    "name C1": (with_name('"a\x9b31m"'.encode()), _CONTROL),
    "name C1, escaped": (with_name(rb'"a\u0085b"'), _CONTROL),
    "name CRLF": (with_name(rb'"a\r\nSet-Cookie: x"'), _CONTROL),
    "name newline": (with_name(rb'"a\n"'), _CONTROL),
    "name ANSI": (with_name(rb'"\u001b[31mRex"'), _CONTROL),
    "name unit separator": (with_name(rb'"a\u001f"'), _CONTROL),
    "name DEL": (with_name(b'"a\x7f"'), _CONTROL),
    "name DEL escaped": (with_name(rb'"a\u007f"'), _CONTROL),
    "name NEL": (with_name(b'"a\xc2\x85"'), _CONTROL),
    "name CSI escaped": (with_name(rb'"a\u009b"'), _CONTROL),
    "name backspace": (with_name(rb'"a\b"'), _CONTROL),
    "name high surrogate": (with_name(rb'"\ud800"'), "name: lone surrogates"),
    "name low surrogate": (with_name(rb'"\udc00"'), "name: lone surrogates"),
    "name surrogates in wrong order": (with_name(rb'"\ude00\ud83d"'), "name: lone surrogates"),
    "name two high surrogates": (with_name(rb'"\ud83d\ud83d"'), "name: lone surrogates"),
    "name surrogate and letter": (with_name(rb'"a\ud800b"'), "name: lone surrogates"),
    "name surrogate behind a fault": (rb'{"categoryId":"1","name":"\ud800"}', "name: lone surrogates"),
    "member with a surrogate": (rb'{"\ud800":1,"name":"Rex","categoryId":1}', "not a member"),
    "category null": (with_category(b"null"), f"{_INT}, got null"),
    "category string": (with_category(b'"1"'), f"{_INT}, got a string"),
    "category true": (with_category(b"true"), f"{_INT}, got a boolean"),
    "category false": (with_category(b"false"), f"{_INT}, got a boolean"),
    "category array": (with_category(b"[1]"), f"{_INT}, got an array"),
    "category object": (with_category(b"{}"), f"{_INT}, got an object"),
    "category 1.0": (with_category(b"1.0"), f"{_INT}, got a number with a fraction"),
    "category 1e3": (with_category(b"1e3"), f"{_INT}, got a number with a fraction"),
    "category 1E0": (with_category(b"1E0"), f"{_INT}, got a number with a fraction"),
    "category -0.0": (with_category(b"-0.0"), f"{_INT}, got a number with a fraction"),
    "category 1.5": (with_category(b"1.5"), f"{_INT}, got a number with a fraction"),
    "category 1e400": (with_category(b"1e400"), f"{_INT}, got a number with a fraction"),
    "category -1e-400": (with_category(b"-1e-400"), f"{_INT}, got a number with a fraction"),
    "category long fraction": (with_category(b"0." + b"1" * 5_000), f"{_INT}, got a number with a fraction"),
    "category long exponent": (with_category(b"1e" + b"9" * 5_000), f"{_INT}, got a number with a fraction"),
    "category 2^63": (with_category(b"9223372036854775808"), _RANGE),
    "category -2^63-1": (with_category(b"-9223372036854775809"), _RANGE),
    "category 2^64": (with_category(b"18446744073709551616"), _RANGE),
    "category 2^64-1": (with_category(b"18446744073709551615"), _RANGE),
    "category 20 digits": (with_category(b"1" + b"0" * 19), _RANGE),
    "category 21 digits": (with_category(b"1" + b"0" * 20), _RANGE),
    "category 4301 digits": (with_category(b"1" * 4_301), _RANGE),
    "category 5000 digits": (with_category(b"9" * 5_000), _RANGE),
    "category -5000 digits": (with_category(b"-" + b"9" * 5_000), _RANGE),
    "category 60000 digits": (with_category(b"1" * 60_000), _RANGE),
    "status null": (with_status(b"null"), "status: expected a string, got null"),
    "status number": (with_status(b"1"), "status: expected a string, got an integer"),
    "status array": (with_status(b'["sold"]'), "status: expected a string, got an array"),
    "status empty": (with_status(b'""'), _STATUS),
    "status upper case": (with_status(b'"SOLD"'), _STATUS),
    "status with space": (with_status(b'"sold "'), _STATUS),
    "status unknown": (with_status(b'"lost"'), _STATUS),
    "status with NUL": (with_status(rb'"sold\u0000"'), _STATUS),
    "status with a surrogate": (with_status(rb'"\ud800"'), _STATUS),
    "status long": (with_status(b'"' + b"s" * 60_000 + b'"'), _STATUS),
    "every member": (
        b'{"id":1,"name":"","categoryId":1.0,"status":"x","y":1}',
        "id: assigned by the service, do not send it; 'y': not a member of a new animal; name: expected 1"
        " to 255 characters, got 0; categoryId: expected an integer, got a number with a fraction or an"
        " exponent; status: expected one of",
    ),
    "a hundred unknown members": (
        b'{"name":"Rex","categoryId":1,' + b",".join(b'"x%d":1' % n for n in range(100)) + b"}",
        "'x9': not a member",
    ),
}


async def refused(shop: CheckedShop, body: bytes, code: str, fragment: str) -> str:
    """The message of a 400 that changed nothing."""
    before = shop.fingerprint()
    answer = await shop.post(None, body=body)
    assert (answer.status, answer.code) == (400, code)
    message: str = answer.json()["message"]
    assert fragment in message
    assert len(message) < 1_000
    assert "location" not in answer.headers
    assert shop.fingerprint() == before
    return message


class TestNotJson400:
    """Bodies that are not one well-formed JSON document in UTF-8."""

    @pytest.mark.parametrize(("body", "fragment"), _NOT_JSON.values(), ids=_NOT_JSON.keys())
    async def test_refused(self, shop: CheckedShop, body: bytes, fragment: str) -> None:
        """400 `invalid_json`, whatever else would be wrong with it."""
        message = await refused(shop, body, JSON, fragment)
        assert message.startswith("The body is ")

    async def test_a_thousand_ways_to_break_one(self, shop: CheckedShop) -> None:
        """Every single byte replaced or left out: an answer of the contract, never a 500."""
        body = b'{"name":"R\\u0065x","categoryId":-12,"status":"sold"}'
        for place in range(len(body)):
            for byte in (b"", b"\x00", b'"', b"\\", b"{", b"}", b",", b"\xff", b"e", b"9"):
                answer = await shop.post(None, body=body[:place] + byte + body[place + 1 :])
                assert answer.status in (201, 400)


class TestNotAnAnimal400:
    """JSON that is no animal to add."""

    @pytest.mark.parametrize(("body", "fragment"), _NOT_AN_ANIMAL.values(), ids=_NOT_AN_ANIMAL.keys())
    async def test_refused(self, shop: CheckedShop, body: bytes, fragment: str) -> None:
        """400 `invalid_body`, and the message names every member at fault."""
        await refused(shop, body, BODY, fragment)
