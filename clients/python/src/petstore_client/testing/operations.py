"""The operations under /v1: one row each, and their handlers."""

from __future__ import annotations

import re
from collections.abc import Callable
from email.utils import formatdate

from petstore_client.testing.bodies import check_type, read
from petstore_client.testing.call import Call, Row, read_id
from petstore_client.testing.clock import Clock
from petstore_client.testing.feed import get_usage, list_events
from petstore_client.testing.lists import Parameters, list_resources
from petstore_client.testing.messages import Answer, Refusal, encode, tag_of
from petstore_client.testing.store import Document, Store

# 5 December 2030 and the release of 1.0.0, as Unix times.
_REMOVAL, _DEPRECATED = 1_922_659_200, 1_795_219_200
_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS = re.compile(rf"[ \t,]*{_TAG}(?:[ \t]*,[ \t,]*{_TAG})*[ \t,]*|[ \t]*\*[ \t]*")

ROWS = (
    Row(
        "listPets",
        "GET",
        "/pets",
        "read",
        ("limit", "cursor", "after", "status", "id", "categoryId", "order"),
    ),
    Row("createPet", "POST", "/pets", "write"),
    Row("getPet", "GET", "/pets/{id}", "read"),
    Row("updatePet", "PATCH", "/pets/{id}", "manage"),
    Row("deletePet", "DELETE", "/pets/{id}", "manage"),
    Row("listCategories", "GET", "/categories", "read"),
    Row("listOrders", "GET", "/store/orders", "read", ("limit", "cursor", "after", "status", "id", "scope")),
    Row("placeOrder", "POST", "/store/orders", "write"),
    Row("cancelOrder", "DELETE", "/store/orders/{id}", "write"),
    Row("updateOrder", "PATCH", "/store/orders/{id}", "manage"),
    Row("listEvents", "GET", "/events", "read", ("after", "type", "limit", "wait")),
    Row("getUsage", "GET", "/usage", "read"),
)


def rows_of(path: str) -> dict[str, Row]:
    """The operations of a path by method; HEAD has GET's. Raises NotImplementedError for webhooks."""
    if path.startswith("/v1/webhooks"):
        raise NotImplementedError("FakePetstore has no webhooks. Sign what your receiver gets with `sign`.")
    found = {row.method: row for row in ROWS if re.fullmatch(f"/v1{row.path}".replace("{id}", "[^/]+"), path)}
    return found | ({"HEAD": found["GET"]} if "GET" in found else {})


class Operations:
    """Carries out what is allowed."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def carry_out(self, call: Call) -> Answer:
        """Raises Refusal."""
        if not call.row.parameters and call.row.name != "getPet":
            Parameters(call)
        if call.row.method != "GET":
            return {"POST": self._create, "PATCH": self._change, "DELETE": self._remove}[call.row.method](
                call
            )
        answer = self._read(call)
        answer.headers.setdefault("etag", tag_of(answer.content))
        known = call.headers.get("if-none-match", "")
        is_known = known.strip(" \t") == "*" or answer.headers["etag"] in known
        if answer.is_named_by_tag and _TAGS.fullmatch(known) and is_known:
            return Answer(304, answer.headers)
        return answer

    def deprecation(self, path: str) -> dict[str, str]:
        """The headers of every answer of getPet."""
        link = f'</docs/deprecation>; rel="deprecation"; type="text/html", <{_successor(path)}>'
        return {
            "deprecation": f"@{_DEPRECATED}",
            "sunset": formatdate(_REMOVAL, usegmt=True),
            "link": f'{link}; rel="successor-version"',
        }

    def _read(self, call: Call) -> Answer:
        match call.row.name:
            case "listEvents":
                return list_events(call, self._store)
            case "getUsage":
                return get_usage(call, self._clock.ms)
            case "listCategories":
                named = sorted(self._store.categories.items())
                return Answer(200, {}, encode([{"id": each, "name": name} for each, name in named]))
            case "getPet":
                return self._get_pet(call)
        return list_resources(call, self._store)

    def _is_removed(self) -> bool:
        return self._clock.ms >= _REMOVAL * 1_000

    def _get_pet(self, call: Call) -> Answer:
        if self._is_removed():
            message = f"GET /pets/{{petId}} was removed; use GET {_successor(call.path)} instead."
            raise Refusal("gone", message)
        Parameters(call)
        pet = self._store.pets.get(call.id or 0)
        if pet is None:
            raise Refusal("not_found", "There is no such animal.")
        return Answer(200, {}, encode(pet))

    def _create(self, call: Call) -> Answer:
        check_type(call.headers, patch=False)
        key, account, is_replay = _idempotency_key(call), call.key.account.name, False
        members = read(call.content, call.row.name)
        create: Callable[[], Document]
        if call.row.name == "createPet":
            members = {"status": "available", **members}
            create = lambda: self._store.add_pet(members)  # noqa: E731
        else:
            members = {"quantity": 1, **members}
            create = lambda: self._store.place(account, members)  # noqa: E731
        if key is None:
            made = create()
        else:
            made, is_replay = self._store.create_once((account, key), (call.row.name, members), create)
        location = f"/v1/store/orders?id={made['id']}"
        if call.row.name == "createPet":
            location = f"/v1/pets/{made['id']}"
            location = _successor(location) if self._is_removed() else location
        return _tagged(
            201, made, {"location": location} | ({"idempotency-replayed": "true"} if is_replay else {})
        )

    def _change(self, call: Call) -> Answer:
        check_type(call.headers, patch=True)
        match, change = _match(call), read(call.content, call.row.name)
        is_pet = call.row.name == "updatePet"
        change_one = self._store.change_pet if is_pet else self._store.change_order
        return _tagged(200, change_one(_required_id(call), change, match), {})

    def _remove(self, call: Call) -> Answer:
        match, its_id = _match(call), _required_id(call)
        if call.row.name == "deletePet":
            self._store.remove_pet(its_id, match)
        else:
            self._store.change_order(its_id, {"status": "cancelled"}, match, call.key.account.name)
        return Answer(204)


def _successor(path: str) -> str:
    its_id = read_id(path.rpartition("/")[2])
    return "/v1/pets" if its_id is None else f"/v1/pets?id={its_id}"


def _tagged(status: int, document: Document, headers: dict[str, str]) -> Answer:
    content = encode(document)
    return Answer(status, {"etag": tag_of(content), **headers}, content)


def _required_id(call: Call) -> int:
    if call.id is None:
        noun = "animal" if "pets" in call.row.path else "order"
        raise Refusal("not_found", f"There is no such {noun}.")
    return call.id


def _idempotency_key(call: Call) -> str | None:
    key = call.headers.get("idempotency-key")
    if key is None:
        return None
    key = key[1:-1] if len(key) > 1 and key[0] == '"' == key[-1] else key
    if not re.fullmatch("[!-~]{1,255}", key):
        raise Refusal("invalid_header", "Idempotency-Key: send one, of 1 to 255 visible ASCII characters.")
    return key


def _match(call: Call) -> str | None:
    match = call.headers.get("if-match")
    if match is not None and not _TAGS.fullmatch(match):
        message = "If-Match: send the ETag of an answer as it stands, with its quotes, or *."
        raise Refusal("invalid_header", message)
    return match
