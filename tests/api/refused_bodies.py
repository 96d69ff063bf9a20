"""Bodies that are refused, by what the message names: no JSON, no animal, no order, and no change of one."""

from __future__ import annotations

import json

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
NOT_JSON: dict[str, list[bytes]] = {
    "empty": [b""],
    "": [
        b" ", b"\x00", b"name=Rex&categoryId=1", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", b"{", b"[", b'{"na',
        b'{"name":"Rex",', GOOD[:-1], b'{"name":"\\', b'{"name":"\\u00', b'{"name":"Rex","categoryId":tru',
        rb'{"name":"\u0041","categoryId":NaN}', GOOD + b"\n" + GOOD, GOOD + b"x", GOOD + b"}", GOOD + b"\x00",
        b"\xc2\xa0" + GOOD, b"\x0b" + GOOD, GOOD.decode().encode("utf-16-le"), b"\xff" + GOOD,
        b'{"na\nme":"Rex","categoryId":1}', b"{'name':'Rex','categoryId':1}", b'{name:"Rex","categoryId":1}',
        b'{"name":"Rex" "categoryId":1}', b'{"name":"Rex","categoryId":1,}', b'{"name":,"categoryId":1}',
        b'{"name":"Rex","categoryId":1]', b'{"name":"Rex",/* c */"categoryId":1}', GOOD + b" // c",
        b'{"name":"Rex","categoryId":1,"x":01}', b'{"name":1,"categoryId":', b")]}'," + GOOD,
        *map(with_name, [b'"a\x00b"', b'"a\nb"', b'"a\x1f"', rb'"\x41"', rb'"\0"', rb'"\u12"', rb'"\u00g1"']),
        *map(with_category, [
            b"01", b"+1", b"0x1", b"1_0", b"-", b".5", b"1.", b"1e", b"1.2.3", b"NaN", b"-Infinity",
            "１".encode(), b"None",  # noqa: RUF001
        ]),
        with_status(b"sold"),
    ],
    "not plain UTF-8: send JSON in UTF-8 without a byte order mark": [
        b"\xef\xbb\xbf" + GOOD, b"\xef\xbb\xbf", GOOD.decode().encode("utf-16"),
        b"\xfe\xff" + GOOD.decode().encode("utf-16-be"), GOOD.decode().encode("utf-32"),
    ],
    "not UTF-8": [
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

NOT_AN_ANIMAL: dict[str, list[bytes]] = {
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
_EVERY_FAULT = (
    "id: assigned by the service, do not send it; 'y': not a member of {noun};"
    " name: expected 1 to 255 characters, got 0; categoryId: expected an integer,"
    " got a number with a fraction or an exponent; status: expected one of"
)
NOT_A_NEW_ANIMAL: dict[str, list[bytes]] = {
    "name: required; categoryId: required": [b"{}", b'{"status":"sold"}'],
    "name: required": [b'{"categoryId":1}'],
    "categoryId: required": [b'{"name":"Rex"}'],
    _EVERY_FAULT.format(noun="a new animal"): [_ALL],
}
NOT_A_CHANGE: dict[str, list[bytes]] = {
    "Send at least one of name, categoryId, status.": [b"{}", b" {\n} "],
    "'petId': not a member of a change of an animal.": [b'{"petId":2}'],
    "name: expected a string, got null.": [b'{"name":null}'],
    _EVERY_FAULT.format(noun="a change of an animal"): [_ALL],
}

_NEW_ORDERS: list[tuple[object, str]] = [
    ({}, "petId: required"),
    ({"petId": 0}, "petId: expected an integer from 1 to 9223372036854775807"),
    ({"petId": 2**63}, "petId: expected an integer from 1"),
    ({"petId": "1"}, "petId: expected an integer, got a string"),
    ({"petId": True}, "petId: expected an integer, got a boolean"),
    ({"petId": 1.0}, "petId: expected an integer, got a number with a fraction"),
    ({"petId": None}, "petId: expected an integer, got null"),
    ({"petId": 1, "quantity": 2}, "quantity: expected 1, since an animal is one animal"),
    ({"petId": 1, "quantity": 0}, "quantity: expected 1"),
    ({"petId": 1, "quantity": None}, "quantity: expected an integer, got null"),
    *(
        ({"petId": 1, "reference": text}, f"reference: {said}")
        for said, text in (
            ("expected a string, got null", None),
            ("expected a string, got an integer", 4711),
            ("expected 1 to 255 characters, got 0", ""),
            ("expected 1 to 255 characters, got 256", "x" * 256),
            ("expected at least one character that is not white space", " \u2003"),
            ("control characters", "PO\n7"),
            ("control characters", "\x85x"),
            ("lone surrogates", "\ud800"),
        )
    ),
    ({"petId": 1, "id": 3}, "id: assigned by the service"),
    ({"petId": 1, "status": "placed"}, "'status': not a member of a new order"),
    ({"petId": 1, "shipDate": "2026-11-21T00:00:00Z"}, "'shipDate': not a member of a new order"),
    ({"petid": 1}, "'petid': not a member of a new order; petId: required"),
    ([1], "Expected an object, got an array"),
]  # fmt: skip
_CHANGES_OF_ORDERS: list[tuple[object, str]] = [
    ({}, "Send at least one of status, shipDate"),
    ({"status": None}, "status: expected a string, got null"),
    ({"status": "Approved"}, "status: expected one of placed, approved, delivered, cancelled"),
    ({"status": "sold"}, "status: expected one of"),
    ({"shipDate": 1795219200}, "shipDate: expected a string or null, got an integer"),
    ({"shipDate": "tomorrow"}, "shipDate: expected a date and time"),
    ({"shipDate": "2026-02-30T00:00:00Z"}, "shipDate: expected a date and time"),
    ({"shipDate": "2026-11-21"}, "shipDate: expected a date and time"),
    ({"reference": "PO-7"}, "'reference': not a member of a change of an order"),
    ({"status": "approved", "complete": True}, "'complete': not a member of a change of an order"),
    ({"id": 1, "status": "approved"}, "id: assigned by the service"),
    (
        {"status": "x", "shipDate": "y"},
        "status: expected one of placed, approved, delivered, cancelled; ship",
    ),
    ("approved", "Expected an object, got a string"),
]
# member -> what the message says of it -> values
_WEBHOOK: dict[str, dict[str, list[object]]] = {
    **{
        name: {": assigned by the service": [1, None]}
        for name in ("id", "keyId", "createdAt", "failingSince", "secret", "disabledReason")
    },
    "Url": {"'Url': not a member of a": ["https://shop.example"]},
    "url": {
        ": expected a string, got ": [None, 1, ["https://shop.example"]],
        ": expected 1 to 2000 characters, got 0": [""],
        ": expected 1 to 2000 characters, got 2001": ["https://shop.example/" + "x" * 1_980],
        ": expected ": [
            "shop.example", "ftp://shop.example", "http://shop.example", "https://", "https://a@shop.example",
            "https://shop.example/#x", "https://shop.example/ x", "https://shöp.example", "//shop.example",
            "https://shop.example:22", "https://shop.example:5432", "https://shop.example:65536",
            "javascript:x", "https://shop.example\n", "https://shop.example/\x00",
        ],
        ": the host ": [
            "https://10.0.0.1", "https://192.168.1.1/", "https://169.254.169.254/latest", "https://[fd00::1]/",
            "https://[::ffff:10.0.0.1]/", "https://0.0.0.0", "https://100.64.0.1", "https://0xa.1", "https://224.0.0.1",
        ],
    },
    "types": {
        ": expected an array of strings": [None, "*", [1], [None], {}, [["*"]]],
        ": expected 1 to 50 types": [[], ["*"] * 51],
        ": expected *, pet.*": [[""], ["pet"], ["PET.*"], ["pet.added"], ["pet.*,order.*"], ["*", "x"]],
    },
    "description": {
        ": expected a string, got ": [None, 1],
        ": expected at most 255 characters, got 256": ["x" * 256],
        ": control characters": ["a\nb", "\x00", "\x85", "\x1b[31m"],
        ": lone surrogates": ["\ud800"],
    },
}  # fmt: skip


def _faulty(members: dict[str, dict[str, list[object]]], **others: object) -> list[tuple[object, str]]:
    """A document for each value, and what the message names."""
    return [
        ({**others, name: value}, f"{name}{said}" if said.startswith(":") else said)
        for name, values in members.items()
        for said, each in values.items()
        for value in each
    ]


_NEW_WEBHOOKS: list[tuple[object, str]] = [
    ({}, "url: required"),
    ([], "Expected an object, got an array"),
    *_faulty(_WEBHOOK, url="https://shop.example"),
    *(
        ({"url": "https://shop.example", name: True}, f"'{name}': not a member of a new webhook")
        for name in ("enabled", "after")
    ),
    (
        {"url": 1, "types": 1, "description": 1},
        "; types: expected an array of strings; description: expected a",
    ),
]
_BOOKMARKS: list[object] = [
    "", "NOW", "0", "evt_000000000000_1", "000000000000-0-0\n", f"000000000000-0-{2**63}",
    f"000000000000-{2**63}-0",
]  # fmt: skip
_CHANGES_OF_WEBHOOKS: list[tuple[object, str]] = [
    ({}, "Send at least one of url, types, description, enabled, after."),
    (None, "Expected an object, got null"),
    *_faulty(_WEBHOOK),
    *_faulty(
        {
            "enabled": {": expected a boolean, got ": [None, 1, "true", []]},
            "after": {
                ": expected a string, got ": [None, 1],
                ": expected now, or the bookmark in the Link of an earlier answer": _BOOKMARKS,
            },
        }
    ),
]
_EVENTS: list[tuple[object, str]] = [
    ({}, "type: required"),
    ([], "Expected an object, got an array"),
    *(({"type": each}, "type: expected a string, got ") for each in (None, 1)),
    *(
        ({"type": each}, "type: expected one of pet.created, ")
        for each in ("", "pet.*", "PET.CREATED", "pet.added")
    ),
    ({"type": "pet.created", "data": {}}, "'data': not a member of an event to send"),
]
_TWICE = "sent more than once"


def by_message(documents: list[tuple[object, str]], more: dict[str, list[bytes]]) -> dict[str, list[bytes]]:
    """Documents as bodies, by what the message names."""
    found = {message: [*bodies] for message, bodies in more.items()}
    for document, message in documents:
        found.setdefault(message, []).append(json.dumps(document).encode())
    return found


# By operation: what the message names, and the bodies.
BODIES: dict[str, dict[str, list[bytes]]] = {
    "rehearseEvent": by_message(
        _EVENTS, {f"type: {_TWICE}": [b'{"type": "pet.created", "type": "pet.created"}']}
    ),
    "createPet": NOT_AN_ANIMAL | NOT_A_NEW_ANIMAL,
    "updatePet": NOT_AN_ANIMAL | NOT_A_CHANGE,
    "createWebhook": by_message(
        _NEW_WEBHOOKS, {f"url: {_TWICE}": [b'{"url": "https://a.example", "url": "https://a.example"}']}
    ),
    "updateWebhook": by_message(
        _CHANGES_OF_WEBHOOKS, {f"types: {_TWICE}": [b'{"types": ["*"], "types": ["*"]}']}
    ),
    "placeOrder": by_message(_NEW_ORDERS, {f"petId: {_TWICE}": [b'{"petId": 2, "petId": 2}']}),
    "updateOrder": by_message(
        _CHANGES_OF_ORDERS,
        {
            f"status: {_TWICE}": [
                b'{"status": "approved", "status": "approved"}',
                rb'{"st\u0061tus": "approved", "status": "approved"}',
            ],
            "shipDate: ": [rb'{"shipDate": "\ud800"}'],
        },
    ),
}
