"""The refusals of /v1 in one table: how a request is made wrong, status, code, and what the message names.

A row applies to one operation, and has all requests that get the same answer. A failing test is called by
operation, status, code and cost (`createPet-400-invalid_json-minute`): search for the code, or in OWN for the
operation. What depends on time or on a failing store: test_sizes_and_times.py, test_outages.py. Which of two
faults wins: test_precedence.py.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from petstore.api.pipeline.routing import Operation
from petstore.core.keys import Access
from tests.api.refused_bodies import BODIES, NOT_JSON
from tests.api.world import (
    APPROVED,
    AVAILABLE,
    CANCELLED,
    DELIVERED,
    DISABLED,
    ENABLED,
    EVENTS,
    FOREIGN,
    FOREIGN_WEBHOOK,
    HELD,
    MISSING,
    ORDERS,
    PENDING,
    PETS,
    PLACED,
    POSTED,
    RESERVED,
    SOLD,
    SPARE,
    URL,
    WEBHOOKS,
    Call,
    repeated,
)
from tests.support.contract import operation_of, table

TABLE = {row.name: row for row in table()}
MAX = 2**63 - 1
Way = Callable[[Call], Call]
HOOK = f"{WEBHOOKS}/{ENABLED}"


class Refusal(NamedTuple):
    """One row. `costs` is what each of its requests takes from a window, or nothing."""

    operation: str
    status: int
    code: str
    names: str
    calls: list[Call]
    costs: str = "minute"

    def __str__(self) -> str:
        return f"{self.operation}-{self.status}-{self.code}-{self.costs}"


# A request of each operation that is not refused.
GOOD: dict[str, Call] = {
    "listPets": Call("GET", PETS),
    "createPet": Call("POST", PETS, {"name": "Rex", "categoryId": 1}),
    "getPet": Call("GET", f"{PETS}/{AVAILABLE}"),
    "updatePet": Call("PATCH", f"{PETS}/{AVAILABLE}", {"name": "Rex", "categoryId": 1}),
    "deletePet": Call("DELETE", f"{PETS}/{AVAILABLE}"),
    "listOrders": Call("GET", ORDERS),
    "placeOrder": Call("POST", ORDERS, {"petId": AVAILABLE}),
    "updateOrder": Call("PATCH", f"{ORDERS}/{PLACED}", {"status": "approved"}),
    "cancelOrder": Call("DELETE", f"{ORDERS}/{PLACED}"),
    "listCategories": Call("GET", "/v1/categories"),
    "listEvents": Call("GET", EVENTS),
    "listWebhooks": Call("GET", WEBHOOKS),
    "createWebhook": Call("POST", WEBHOOKS, {"url": URL}),
    "getWebhook": Call("GET", HOOK),
    "updateWebhook": Call("PATCH", HOOK, {"url": URL}),
    "deleteWebhook": Call("DELETE", HOOK),
    "rotateWebhookSecret": Call("POST", f"{HOOK}/secret"),
    "testWebhook": Call("POST", f"{HOOK}/test"),
    "listDeliveries": Call("GET", f"{HOOK}/deliveries"),
    "redeliver": Call("POST", f"{HOOK}/deliveries/{{event}}"),
    "rehearseEvent": Call("POST", "/v1/rehearsal/events", {"type": "pet.created"}),
    "getUsage": Call("GET", "/v1/usage"),
}
# The methods of each path, by one of its operations.
ALLOWED = {
    "listPets": "GET, HEAD, OPTIONS, POST",
    "getPet": "DELETE, GET, HEAD, OPTIONS, PATCH",
    "listOrders": "GET, HEAD, OPTIONS, POST",
    "cancelOrder": "DELETE, OPTIONS, PATCH",
    "listCategories": "GET, HEAD, OPTIONS",
    "listEvents": "GET, HEAD, OPTIONS",
    "listWebhooks": "GET, HEAD, OPTIONS, POST",
    "getWebhook": "DELETE, GET, HEAD, OPTIONS, PATCH",
    "rotateWebhookSecret": "OPTIONS, POST",
    "testWebhook": "OPTIONS, POST",
    "listDeliveries": "GET, HEAD, OPTIONS",
    "redeliver": "OPTIONS, POST",
    "rehearseEvent": "OPTIONS, POST",
    "getUsage": "GET, HEAD, OPTIONS",
}
# What a PATCH may be (RFC 5789).
PATCHES = "application/json, application/merge-patch+json"


def headers(*pairs: tuple[str, str | None]) -> Way:
    return lambda call: call._replace(headers=pairs)


def level(name: str) -> Way:
    return lambda call: call._replace(level=name)


def query(text: str) -> Way:
    return lambda call: call._replace(target=f"{call.target}?{text}")


def credential(value: str) -> Way:
    """An Authorization header instead of the key."""
    return elsewhere(("authorization", value))


def elsewhere(*pairs: tuple[str, str | None], more: str = "") -> Way:
    """A request whose key is not in its header: it has these headers, and `more` in its target."""
    return lambda call: call._replace(level="none", headers=pairs, target=call.target + more)


def with_body(raw: bytes, *pairs: tuple[str, str | None]) -> Way:
    return lambda call: call._replace(body=raw, headers=pairs)


def parameter(row: Operation, value: str, name: str = "") -> Way:
    """Another value of a parameter in the path, the first one unless it is named."""
    places = [place for place, part in enumerate(str(row.path).split("/")) if part.startswith(f"{{{name}")]

    def way(call: Call) -> Call:
        parts = call.target.split("/")
        parts[places[0]] = value
        return call._replace(target="/".join(parts))

    return way


_CREDENTIAL = "The API key is missing or invalid; send it as 'Authorization: Bearer <API_KEY>'."
# `{key}` is a valid key; the other words are made of it by World.words.
_NO_KEYS = [
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
_ELSEWHERE = [
    elsewhere(), elsewhere(("cookie", "authorization=Bearer {key}; api_key={key}")),
    elsewhere(("x-api-key", "{key}")), elsewhere(("proxy-authorization", "Bearer {key}")),
    elsewhere(("x-authorization", "Bearer {key}")), elsewhere(("x-forwarded-authorization", "Bearer {key}")),
    elsewhere(("authorization ", "Bearer {key}")), elsewhere(more="?access_token={key}"),
    elsewhere(more="?api_key={key}&key={key}&authorization=Bearer%20{key}"),
]  # fmt: skip
_VALID, _BAD = ("authorization", "Bearer {key}"), ("authorization", "Bearer x")
_TWICE = [elsewhere(_VALID, _VALID), elsewhere(_VALID, ("authorization", "")), elsewhere(_BAD, _VALID)]
_HOSTS = [
    "", " ", "a b", "a/b", "a@b", "http://a", "a:b", "a:123456", "::1", "[::1", "a\x00", "é", "a,b c",
    "a?b", "a#b", "<a>", "a\\b", '"', None,
]  # fmt: skip
_TWO_HOSTS = [headers(("host", "a"), ("host", other)) for other in "ab"]
_METHODS = [
    "PUT", "TRACE", "CONNECT", "QUERY", "PROPFIND", "get", "Get", "post", "options", "X", "FOO-BAR", "patch",
    "Delete", "PATCH", "DELETE", "POST",
]  # fmt: skip
_UNKNOWN_PARAMETERS = [
    ("page=2", "page"), ("page", "page"), ("Status=sold", "Status"), ("LIMIT=abc", "LIMIT"),
    ("limit%5B%5D=3", "limit[]"), ("offset=7&page=2", "offset"), ("=", "A value without a name"),
    ("=5", "A value without a name"), ("%ff=%ff", "\ufffd"), ("q%F0%9F%98%80=1", "q\U0001f600"),
    ("%00=1", "\0"), (f"{'n' * 65}=1", f"{'n' * 64}…"), ("api_key=x&access_token=y", "api_key"),
    (" limit=1", " limit"), ("limit =1", "limit "), ("petId=1", "petId"), ("ids[]=1", "ids[]"),
    ("id[0]=1", "id[0]"), ("_method=DELETE", "_method"),
]  # fmt: skip


_PATHS = [
    "/v1", "/v1/", "/v1/pets/", "/v1//pets", "/v1/pets//", "/v1/pets//1",
    "/v1/pets/1/", "/v1/pets/1/2", "/v1/Pets", "/v1/PETS", "/v1/pet", "/v1/petss", "/v1/pets%2F1",
    "/v1/pets%2f", "/v1/%70ets", "/v1/pets%20", "/v1/pets%00", "/v1/./pets", "/v1/../v1/pets",
    "/v1/pets/../pets", "/v1/%2e%2e/v1/pets", "/v1/pets;a=b", "/v1/pets\\1",
    "/v1/pets.json", "/v1/v1/pets", "/v1/store/orders/", "/v1/store/orders/1/", "/v1/store", "/v1/metrics",
    "/v1/healthz", "/v1/openapi.json", "/v1/*", "/v1/{petId}", "/v1/pets/{petId}/x", "/v1/%00",
    "/v1/%ff%fe", "/v1/é", "/v1/" + "a/" * 2_000, "/v1/categories/", "/v1/keys", "/v1/events/",
]  # fmt: skip
_MEDIA_TYPES = [
    None, "", " ", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain",
    "text/json", "application/xml", "application/octet-stream", "application/javascript",
    "application/jsonp", "application/json5", "application/ndjson", "application/json-seq",
    "application/json-patch+json", "application/merge-patch",
    "application/vnd.api+json", "application/problem+json", "application/ld+json", "application/*", "*/*",
    "json", "application", "application/", "/json", "application/json; charset=latin1",
    "application/json; charset=utf-16", "application/json; charset=ascii", "application/json; charset=",
    'application/json; charset=""',
    "application/json; charset=utf-8; charset=latin1", "application/json; charset=utf-8 latin1",
    "application/json; charset", "application/json; =x", 'application/json; profile="x',
    'application/json; a="\\"; charset=latin1', 'application/json; a="x"; charset=latin1',
    'application/json; Charset="latin1"', "application/json; a=b c", "application/json" + "; " * 4_000 + "x",
    "application/json,text/plain", "text/plain, application/json", "application/json application/json",
    "application / json", "application/json\x00", "application/jsonapplication/json", "xapplication/json",
    "application/jsonx", "application/json\ttext/plain", "applicatïon/json",
    "application/json; charset=utf-8\xff", "a" * 5_000,
]  # fmt: skip
_ENCODINGS = [
    "gzip", "x-gzip", "deflate", "br", "zstd", "compress", "GZIP", "gzip, identity", "identity, gzip",
    "aes128gcm", "identity, identity", "*", "utf-8", "base64", "gzip\x00", "ïdentity",
]  # fmt: skip
_LIMITS = [
    "0", "101", "-1", "", "abc", "1.0", "+5", "%2B5", "05", "1_0", "%EF%BC%95", "%D9%A5", "1e1", "0x10",
    "%205", "5%20", "5%0A", "5%00", "1000", "9999999999999999999999", "null", "true", "NaN", "5;6", "5,6",
    "%", "%zz", "%FF", "1'%20OR%20'1'='1",
]  # fmt: skip
_STATUSES = [
    "", "AVAILABLE", "Available", "available%20", "%20available", "available%00", "availabl",
    "sold,pending", "0", "null", "*", "%FF", "avail\u0430ble", "sold%0D%0AX-Evil:%201",
    "'; DROP TABLE pets; --",
]  # fmt: skip
_ID_VALUES = [
    "", "0", "-1", "%2B1", "01", "1.0", "abc", "9223372036854775808", "99999999999999999999", "%201", "1,",
    ",1", "1,,2", "2,1%2C", "1,x", "1;2", "1|2", "[1]", "1_0", "%EF%BC%91", "1e0", "0x1", "null", "1%00",
    "%FF",
]  # fmt: skip
_CATEGORIES = [
    "", "+1", "%2B1", "01", "-0", "-01", "1.0", "1e0", "0x1", "1_0", "abc", "%201", "1%20", "1%00", "--1",
    "9223372036854775808", "-9223372036854775809", "99999999999999999999", "%EF%BC%91", "%E2%88%921", "1,2",
    "-", "null",
]  # fmt: skip
_ORDERINGS = ["", "ID", "-ID", "%2Bid", "name", "-id,name", "id%20", "desc", "--id", "%E2%88%92id"]
_IDENTIFIERS = [
    "0", "-1", "+1", "01", "1.0", "abc", "9223372036854775808", "18446744073709551617", "9" * 400, "1e0",
    "0x1", "1_0", "1 ", " 1", "%31", "%201", "1%20", "1%0A", "1%00", "%2B1", "%EF%BC%91", "\uff11",
    "\u0661", "null", "NaN", "-0", "--1", "1-", "1,2", "1;a=b", "*", "1'", "1%27%20OR%201=1", "..", ".",
    "%2e%2e", "1%2F", "{petId}", "\U0001d7cf", "²", "true",
]  # fmt: skip
_LENGTHS = ["-1", "+1", "1.0", "0x10", "", " ", "a", "1_0", "1,1", "\xb2", "9" * 21, "1 1"]
_IDEMPOTENCY_KEYS = [
    "", '""', "a b", " ", "k" * 256, '"' + "k" * 256 + '"', "é", "\x7f", "a\tb", "\x00",
    "😀".encode().decode("latin-1"),
]  # fmt: skip
_CURSORS = [
    "x", "", "AAAAAAAAAAKsMSDc", "AAAAAAAAAAKsMSDcc", "AAAAAAAAAAK%2BMSDc", "%00" * 16, "A" * 4_000,
]  # fmt: skip
_BOOKMARKS = [
    "", "NOW", "now%20", "0", "evt_000000000000_1", "000000000000-0", "000000000000-0-0-0", "00000000000-0-0",
    "00000000000G-0-0", "00000000000A-0-0", "000000000000--1-0", "000000000000-0-+1",
    "000000000000-0-%EF%BC%91", f"000000000000-{'9' * 20}-0", f"000000000000-0-{2**63}",
    "000000000000-0-0%0A", "A" * 4_000,
]  # fmt: skip
_NOUNS = {PETS: "animal", ORDERS: "order", WEBHOOKS: "webhook"}
_EVENT_IDS = [
    "evt_000000000000_1", "evt_000000000000_0", "{event}0", "{event}%30", "EVT_000000000000_1", "evt_1",
    "evt__1", "evt_000000000000_", f"evt_000000000000_{'9' * 19}", f"evt_000000000000_{2**63}",
    "000000000000-0-1", "%65vt", "evt_" + "0" * 4_000,
]  # fmt: skip
_TYPES = [
    "", "*", "pet", "pet.", "pet.*.*", "PET.*", "pet.added", "pet.created%20", "pet.created,", "pet.*,x",
    "pet.*&type=x", "person.*", "%FF",
]  # fmt: skip
_TOO_LONG = ["65537", "100000000", "9" * 20, "00000000000000065537"]
# What the message says about a parameter, and values that it does not take; those of `id` after a good one.
_PARAMETERS: dict[str, tuple[str, list[str]]] = {
    "limit": ("limit: expected an integer from 1 to 100.", _LIMITS),
    "cursor": ("cursor: not one that was given for this filter", _CURSORS),
    "listPets status": ("status: expected one of available, pending, sold.", _STATUSES),
    "listOrders status": (
        "status: expected one of placed, approved, delivered, cancelled.",
        ["", "PLACED", "available", "placed%20", "placed,approved"],
    ),
    "id": (
        f"id: expected an integer from 1 to {MAX}.",
        [*_ID_VALUES, *(f"1&id={each}" for each in _ID_VALUES)],
    ),
    "scope": ("scope: expected own or all.", ["", "ALL", "*", "other"]),
    "categoryId": (f"categoryId: expected an integer from {-MAX - 1} to {MAX}.", _CATEGORIES),
    "order": ("order: expected id or -id.", _ORDERINGS),
    "after": (f"after: expected an identifier, an integer from 1 to {MAX}.", _ID_VALUES),
    "listEvents after": ("after: expected now, or the bookmark in the Link of an earlier answer", _BOOKMARKS),
    "type": ("type: expected pet.*, category.*, order.*", _TYPES),
    "wait": ("wait: expected an integer from 0 to 120.", ["121", *_LIMITS[2:]]),
}


def pet(method: str, *ids: int, document: object = None) -> list[Call]:
    return [Call(method, f"{PETS}/{each}", document) for each in ids]


def order(method: str, *ids: int, document: object = None) -> list[Call]:
    return [Call(method, f"{ORDERS}/{each}", document) for each in ids]


def webhook(name: str, *ids: int) -> list[Call]:
    return [parameter(TABLE[name], str(each))(GOOD[name]) for each in ids]


_CODES = {
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    410: "events_gone",
    422: "idempotency_key_reused",
}
# Another animal than was posted, each by one member.
_OTHERS: list[dict[str, object]] = [
    {"name": "Again"}, {"name": "again "}, {"categoryId": 2}, {"status": "sold"},
]  # fmt: skip
_DATED = {"shipDate": "2026-11-21T00:00:00Z"}
_ALL = [f"{ORDERS}?scope=all{more}" for more in ("", "&id=1", "&status=placed", "&cursor=x")]
# What an operation refuses because of the store or the key's level: status, what the message names, requests.
OWN: dict[str, list[tuple[int, str, list[Call]]]] = {
    "listEvents": [
        (410, "This bookmark is of another store", [Call("GET", f"{EVENTS}?after={'0' * 12}-0-1")])
    ],
    "createWebhook": [(422, "", [repeated(WEBHOOKS, {"url": URL, "types": ["pet.*"]})])],
    **{
        name: [(404, "There is no webhook ", webhook(name, FOREIGN_WEBHOOK, MISSING, MAX))]
        for name in ("getWebhook", "updateWebhook", "deleteWebhook", "rotateWebhookSecret", "listDeliveries")
    },
    **{
        name: [
            (404, "There is no webhook ", webhook(name, FOREIGN_WEBHOOK, MISSING, MAX)),
            (409, f"Webhook {DISABLED} is disabled: enable it first.", webhook(name, DISABLED)),
        ]
        for name in ("testWebhook", "redeliver")
    },
    "createPet": [(422, "", [repeated(PETS, {**POSTED[PETS], **other}) for other in _OTHERS])],
    "getPet": [(404, "There is no such animal.", pet("GET", MISSING, 2**53 + 1, MAX))],
    "updatePet": [
        (404, "There is no animal ", pet("PATCH", MISSING, MAX, document={"name": "x"})),
        (
            409,
            f"Animal {SOLD} is sold: it can become available, not pending.",
            pet("PATCH", SOLD, document={"status": "pending", "name": "x"}),
        ),
        (409, f"holds animal {HELD}, so it", pet("PATCH", HELD, document={"status": "sold"})),
        (409, f"holds animal {RESERVED}, so it", pet("PATCH", RESERVED, document={"status": "sold"})),
    ],
    "deletePet": [
        (404, "There is no animal ", pet("DELETE", MISSING, MAX)),
        (409, f"Order {PLACED} holds animal {HELD}, so it", pet("DELETE", HELD)),
        (409, f"Order {APPROVED} holds animal {RESERVED}, so it", pet("DELETE", RESERVED)),
    ],
    "listOrders": [
        (
            403,
            f"scope=all needs a key of level manage; this key has {name}.",
            [Call("GET", target, level=name) for target in _ALL],
        )
        for name in ("read", "write")
    ],
    "placeOrder": [
        (409, "", [Call("POST", ORDERS, {"petId": each}) for each in (PENDING, SOLD, MISSING, HELD)]),
        (422, "", [repeated(ORDERS, {"petId": SPARE})]),
    ],
    "cancelOrder": [
        (404, "There is no order ", order("DELETE", MISSING, FOREIGN)),
        (409, "is delivered", order("DELETE", DELIVERED)),
    ],
    "updateOrder": [
        (404, "There is no order ", order("PATCH", MISSING, document={"status": "approved"})),
        *(
            (409, names, order("PATCH", order_id, document=document))
            for order_id, document, names in (
                (PLACED, {"status": "delivered"}, "placed: it can become approved or cancelled, not deliv"),
                (APPROVED, {"status": "placed"}, "it can become delivered or cancelled, not placed."),
                (CANCELLED, {"status": "approved"}, "in its last state, it can't become approved."),
                (DELIVERED, {"status": "cancelled"}, "is delivered: in its last state"),
                (PLACED, {"status": "cancelled", **_DATED}, "a cancelled order gets no ship date"),
                (CANCELLED, _DATED, "a cancelled order gets no ship date"),
                (DELIVERED, {"shipDate": None}, ""),
            )
        ),
    ],
}


@cache
def rows() -> list[Refusal]:
    """The whole table, made once."""
    return list(_rows())


def _rows() -> Iterator[Refusal]:
    gone = [Call("PATCH", HOOK, {"after": f"{'0' * 12}-0-1", "url": "https://other.example"})]
    yield Refusal("updateWebhook", 410, "events_gone", "This bookmark is of another store", gone)
    for name, row in TABLE.items():
        for status, code, names, costs, ways in _ways_of(row):
            calls = [way(GOOD[name]) for way in ways]
            calls += [ways[0](GOOD[name]._replace(method="HEAD"))] * (row.method == "GET")
            yield Refusal(name, status, code, names, calls, costs)
        for status, names, calls in OWN.get(name, []):
            yield Refusal(name, status, _CODES[status], names, calls)
    for name, allowed in ALLOWED.items():
        others = [GOOD[name]._replace(method=each) for each in _METHODS if each not in allowed.split(", ")]
        yield Refusal(name, 405, "method_not_allowed", f"This path takes {allowed}.", others)
    yield Refusal(
        "none", 404, "not_found", "There is no such path under /v1", [Call("GET", path) for path in _PATHS]
    )
    strangers = [Call(method, path, level="none") for method in ("GET", "FOO") for path in _PATHS]
    yield Refusal("none", 401, "unauthorized", _CREDENTIAL, strangers, "address")


def _ways_of(row: Operation) -> Iterator[tuple[int, str, str, str, list[Way]]]:
    yield from _of_every(row)
    own = [(400, "invalid_parameter", *each) for each in _of_parameters(row)]
    if row.name in BODIES:
        own += _of_bodies(row)
    if row.method == "POST" and row.path in POSTED:
        own += _of_creations()
    if row.method in ("PATCH", "DELETE"):
        own += _of_changes()
    if row.path is not None and "{" in row.path:
        ways = [parameter(row, each) for each in _IDENTIFIERS]
        own += [(404, "not_found", f"There is no such {_NOUNS[row.path.split('/{')[0]]}.", ways)]
    if row.name == "redeliver":
        ways = [parameter(row, each, "eventId") for each in (*_IDENTIFIERS, *_EVENT_IDS)]
        own += [(404, "not_found", "There is no event ", ways)]
    for status, code, names, ways in own:
        yield status, code, names, "minute", ways


def _some(row: Operation, ways: list[Way]) -> list[Way]:
    """All ways for an operation that answers at once, one in a task, and a change; for others, which are read
    by the same code, the first two."""
    return ways if row.name in ("listPets", "createPet", "updatePet") else ways[:2]


def _of_every(row: Operation) -> Iterator[tuple[int, str, str, str, list[Way]]]:
    yield 414, "uri_too_long", "8192 bytes", "nothing", [query("x" * 9_000)]
    yield 431, "headers_too_large", "16384 bytes", "nothing", [headers(("x", "x" * 17_000))]
    hosts = [headers(("host", host)) for host in _HOSTS] + _TWO_HOSTS
    yield 400, "invalid_header", "Host: ", "nothing", _some(row, hosts)
    strangers = [*map(credential, _NO_KEYS), *_ELSEWHERE, *_TWICE]
    yield 401, "unauthorized", _CREDENTIAL, "address", _some(row, strangers)
    yield 401, "unauthorized", "was revoked", "address", [level("revoked")]
    yield 403, "account_suspended", "is suspended; ask the operator", "nothing", [level("suspended")]
    yield 429, "rate_limited", "1 requests per day is used up", "used-up", [level("used-up")]
    yield 404, "not_found", "", "minute", [lambda call: call._replace(target=f"{call.target}/")]
    assert row.path is not None
    needed = Access(operation_of(row.path.encode(), row.method)["x-petstore-access"])
    for name in Access:
        if not name.includes(needed):
            message = f"needs a key of level {needed}; this key has {name}. Ask the operator for one."
            yield 403, "forbidden", message, "minute", [level(name.value)]
    taken = f"takes {', '.join(row.parameters)}" if row.parameters else "takes none"
    for text, unknown in _UNKNOWN_PARAMETERS:
        message = f"{unknown}: not a parameter of this operation; it {taken}."
        yield 400, "invalid_parameter", message, "minute", [query(text)]


def _of_parameters(row: Operation) -> Iterator[tuple[str, list[Way]]]:
    named = row.parameters or ()
    for name in named:
        message, values = _PARAMETERS.get(f"{row.name} {name}") or _PARAMETERS[name]
        yield message, [query(f"{name}={value}") for value in values]
        if name not in {"id", "type"}:
            encoded = f"%{ord(name[0]):x}{name[1:]}"
            twice = [query(f"{name}={values[0]}&{other}=1") for other in (name, encoded)]
            yield f"{name}: sent more than once", twice
    if "id" in named:
        yield "id: at most 100 values, got 101", [
            query("&".join(["id=1"] * 101)), query("id=1&id=" + ",".join(["1"] * 100)),
        ]  # fmt: skip
    # Of several faults one is the answer, whatever their order in the query.
    order = ("id", "limit", "wait", "status", "scope", "categoryId", "order", "cursor", "type", "after")
    faults = [(f"{name}: ", f"{name}={'' if name == 'cursor' else 'x'}") for name in order if name in named]
    for number, (name, _) in enumerate(faults):
        yield name, [query("&".join(fault for _, fault in reversed(faults[number:])))]
    if {"cursor", "after"} <= {*named}:
        yield (
            "cursor: not together with after; send one of them.",
            [
                query(both)
                for both in ("cursor=x&after=1", "after=1&cursor=AAAAAAAAAAKsMSDc", "cursor=&after=x")
            ],
        )
    if {"cursor", "status", "id"} <= {*named}:
        every = "cursor=x&status=x&limit=0&limit=0&id=0"
        yield "limit: sent more than once", [query(every)]
        yield "page: not a parameter", [query(f"{every}&page=2")]


def _of_bodies(row: Operation) -> Iterator[tuple[int, str, str, list[Way]]]:
    too_large = [headers(("content-length", length)) for length in _TOO_LONG]
    yield 413, "payload_too_large", "65536 bytes", [*too_large, with_body(b"[" + b" " * 65_536)]
    malformed = [headers(("content-length", length)) for length in _LENGTHS]
    yield 400, "invalid_header", "Content-Length: ", _some(row, malformed)
    encoded = [headers(("content-encoding", encoding)) for encoding in _ENCODINGS]
    twice = [
        headers(("content-encoding", "identity"), ("content-encoding", each)) for each in ("gzip", "identity")
    ]
    bomb = with_body(_bomb(), ("content-encoding", "gzip"))
    yield 415, "unsupported_media_type", "without a Content-Encoding", _some(row, [bomb, *encoded, *twice])
    patch = row.method == "PATCH"
    types: list[str | None] = [*_MEDIA_TYPES, *([] if patch else ["application/merge-patch+json"])]
    ways = [headers(("content-type", each)) for each in types]
    ways.append(headers(("content-type", "application/json"), ("content-type", "application/json")))
    ways = _some(row, ways[::-1])  # the first two are what each method has of its own
    other = " or 'application/merge-patch+json'" if patch else ""
    yield 415, "unsupported_media_type", f"the header 'Content-Type: application/json'{other}.", ways
    for names, bodies in NOT_JSON.items():
        yield 400, "invalid_json", f"The body is {names}", _some(row, [with_body(body) for body in bodies])
    for names, bodies in BODIES[row.name].items():
        yield 400, "invalid_body", names, [with_body(body) for body in bodies]


@cache
def _bomb() -> bytes:
    """20 MB in 20 kB."""
    return gzip.compress(b" " * 20_000_000)


def _of_creations() -> Iterator[tuple[int, str, str, list[Way]]]:
    ways = [headers(("idempotency-key", each)) for each in _IDEMPOTENCY_KEYS]
    twice = headers(("idempotency-key", "k"), ("idempotency-key", "k"))
    yield 400, "invalid_header", "Idempotency-Key: ", [*ways, twice]


def _of_changes() -> Iterator[tuple[int, str, str, list[Way]]]:
    malformed = [headers(("if-match", each)) for each in ("bare", ",\t*", "", '"a', '"a b"', "W/*")]
    yield 400, "invalid_header", "If-Match: ", malformed
    failed = [headers(("if-match", each)) for each in ('"a"', 'W/"a"', '"a", "b"')]
    yield 412, "precondition_failed", "", failed
