"""The OpenAPI document against the code: valid, equal to the router and to the catalogue of errors (I20)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from petstore import config
from petstore.api.deprecation import DEPRECATED_AT
from petstore.api.openapi.document import INTERFACE_VERSION
from petstore.api.orders import read_order_query
from petstore.api.pets import read_page_query
from petstore.api.pipeline import body
from petstore.api.pipeline.app import PREFIX
from petstore.config import PUBLISHED_REMOVAL
from petstore.core.durations import DAY_MS
from petstore.core.errors import BY_CODE, HeadersTooLarge, UriTooLong
from petstore.core.events import PATTERNS, TYPES
from petstore.core.keys import Access, Caller
from petstore.core.limits.plans import WEBHOOKS_MAX, WINDOWS
from petstore.core.orders import QUANTITY, OrderStatus
from petstore.core.pets import PetStatus
from petstore.core.targets import URL_MAX
from petstore.core.values import IDS_MAX, NAME_MAX_CHARACTERS
from petstore.core.webhooks import (
    ALL,
    ANSWER_KEPT_CHARACTERS,
    DOWN_AFTER,
    GIVEN_UP_AFTER_MS,
    REPETITIONS_MS,
    RETRY_AFTER_MAX_MS,
    SPREAD,
    TESTS_A_MINUTE,
    TYPES_MAX,
    mint,
    signature,
)
from petstore.wiring import operations
from tests.support import contract
from tests.support.service import Shop
from tests.support.windows import limits_of

ROOT = Path(__file__).parents[2]
PUBLISHED_SCHEMAS = {"PetStatus", "NewPet", "Pet", "Pets", "Error"}
# Its handlers are not called.
TABLE = contract.table()
METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


def _schema(name: str, member: str) -> dict[str, Any]:
    """What the document says about a member of a component."""
    found: dict[str, Any] = contract.document()["components"]["schemas"][name]["properties"][member]
    return found


def documented() -> dict[tuple[str, str], dict[str, Any]]:
    """(path, method in upper case) -> operation."""
    return {
        (path, method.upper()): operation
        for path, item in contract.document()["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    }


def _answers(operation: dict[str, Any]) -> str:
    """What the document shows of all that the operation answers."""
    return json.dumps([contract.resolve(response) for response in operation["responses"].values()])


def responses() -> list[tuple[str, dict[str, Any]]]:
    """Every response of every operation, with its place and status."""
    return [
        (f"{method} {path} {status}", contract.resolve(response))
        for (path, method), operation in documented().items()
        for status, response in operation["responses"].items()
    ]


class TestValid:
    """The document is OpenAPI 3.1."""

    def test_openapi_spec_validator_finds_no_error(self) -> None:
        """The document is valid by the rules of OpenAPI itself."""
        assert [error.message for error in OpenAPIV31SpecValidator(contract.document()).iter_errors()] == []

    def test_every_reference_leads_somewhere_and_every_component_is_used(self) -> None:
        """Generators stop at a missing one and make dead code of an unused one."""
        text = json.dumps(contract.document())
        references = set(re.findall(r'"#/components/([A-Za-z]+)/([A-Za-z0-9-]+)"', text))
        components = {
            (kind, name) for kind, named in contract.document()["components"].items() for name in named
        }
        assert references <= components
        assert components - references == {("securitySchemes", "bearerAuth")}

    def test_the_version_is_that_of_the_interface(self) -> None:
        """The document, and what the start page takes for it, have the interface's own version."""
        assert contract.document()["info"]["version"] == INTERFACE_VERSION == "1.0.0"


class TestRouter:
    """Router = document."""

    def test_paths_methods_operations_and_deprecation(self) -> None:
        """Document and router have one operationId at each path and method, and deprecate the same ones."""
        assert {(row.path, row.method): (row.name, row.deprecated) for row in TABLE} == {
            (PREFIX + path, method): (operation["operationId"], operation.get("deprecated", False))
            for (path, method), operation in documented().items()
        }

    def test_the_query_parameters_are_those_that_the_router_takes(self) -> None:
        """Document and router name them in one order, which the example of a refused one has too."""
        for row in TABLE:
            assert row.path is not None
            operation = documented()[row.path.removeprefix(PREFIX), row.method]
            parameters = map(contract.resolve, operation["parameters"])
            named = tuple(each["name"] for each in parameters if each["in"] == "query")
            assert named == (row.parameters or ())
            for taken in re.findall(r"this operation; it takes ([\w, ]+)\.", _answers(operation)):
                assert taken == (", ".join(named) or "none"), row.name

    def test_levels_of_keys(self) -> None:
        """Document and router ask for one level, and the description and the example of a refused key say
        it."""
        for row in TABLE:
            assert row.path is not None
            operation = documented()[row.path.removeprefix(PREFIX), row.method]
            assert operation["x-petstore-access"] == row.access
            assert re.search(rf"Needs a key of level [^.]*`{row.access}`[^.]*\.\n$", operation["description"])
            refused = re.findall(r"This operation needs a key of level (\w+)", _answers(operation))
            assert refused == [row.access] * (row.access != Access.READ), row.name

    def test_access_and_caching(self) -> None:
        """Only a GET that every key may send may be cached. But for webhooks it needs no more than to read;
        other methods write."""
        for row in TABLE:
            is_read = row.method == "GET" and "webhook" not in str(row.path)
            assert (row.access is Access.READ) == is_read
            assert is_read or not row.cacheable

    def test_one_scheme_for_every_operation(self) -> None:
        """HTTP bearer, for the whole document; no operation has another."""
        assert contract.document()["security"] == [{"bearerAuth": []}]
        assert not any("security" in operation for operation in documented().values())
        scheme = contract.document()["components"]["securitySchemes"]["bearerAuth"]
        assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")

    def test_the_yaml_reads_like_its_sources(self) -> None:
        """Every line of a long text stands there as it was written, none longer than 132 characters."""
        lines = {
            line.strip()
            for line in operations.openapi_document(config.load({})).as_yaml().decode().split("\n")
        }
        for node in _nodes(contract.document()):
            for text in node.values():
                if isinstance(text, str) and "\n" in text.strip():
                    assert {line.strip() for line in text.splitlines()} <= lines
        assert "- {id: 1, name: Rex, categoryId: 1, status: available}" in lines
        assert max(map(len, lines)) <= 132

    def test_what_is_sent(self) -> None:
        """Every type of event, all described alike, with the headers of a signature."""
        sent_to = contract.document()["webhooks"]
        posts = {name: dict(contract.resolve(item)["post"]) for name, item in sent_to.items()}
        assert {name: post["summary"] for name, post in posts.items()} == {
            kind.name: kind.summary for kind in TYPES
        }
        assert len({post.pop("operationId") for post in posts.values()}) == len(TYPES)
        [sent] = {json.dumps(post | {"summary": ""}) for post in posts.values()}
        signed = signature([mint(), mint()], "evt_000000000000_1", 0, b"")
        parameters = json.loads(sent)["parameters"]
        assert [each["name"] for each in parameters] == list(signed)
        for each in parameters:
            value: object = signed[each["name"]]
            if each["schema"]["type"] == "integer":
                value = int(signed[each["name"]])
            contract.check_value(each["schema"], value, each["name"])
        assert not any("callbacks" in each for each in documented().values())

    def test_what_is_promised_of_webhooks(self) -> None:
        """The document's numbers are those of the code."""
        said = " ".join(documented()["/webhooks", "POST"]["description"].split())
        plans = ", ".join(f"{plan.capitalize()} {limit}" for plan, limit in WEBHOOKS_MAX.items())
        pauses = [ms // 1_000 for ms in REPETITIONS_MS]
        assert plans in said
        assert pauses == [5, 30, 5 * 60, 30 * 60, *(hours * 3_600 for hours in (2, 5, 10, 14, 20, 24))]
        assert "after 5 s, 30 s, 5 min, 30 min, 2, 5, 10, 14, 20 and 24 h, each ±20 %" in said
        assert f"After {DOWN_AFTER} failures in a row" in said
        assert (GIVEN_UP_AFTER_MS, RETRY_AFTER_MAX_MS, SPREAD) == (5 * DAY_MS, DAY_MS, 0.2)
        schemas = contract.document()["components"]["schemas"]
        assert schemas["WebhookType"]["enum"] == [ALL, *PATTERNS]
        assert schemas["WebhookTypes"]["maxItems"] == TYPES_MAX
        assert _schema("NewWebhook", "url")["maxLength"] == URL_MAX
        assert _schema("Delivery", "answer")["maxLength"] == ANSWER_KEPT_CHARACTERS
        assert f"{TESTS_A_MINUTE} times a minute" in documented()["/webhooks/{webhookId}/test", "POST"][
            "description"
        ].replace("\n", " ")

    async def test_the_served_document_is_the_contract(self, shop: Shop) -> None:
        """The service answers the contract, with the addresses of the default settings."""
        assert (await shop.call("GET", "/openapi.json")).json() == contract.document()


class TestErrors:
    """Codes = catalogue."""

    def test_the_list_of_codes(self) -> None:
        """The document knows every code of the catalogue, once, and no other."""
        assert sorted(_schema("Error", "code")["examples"]) == sorted(BY_CODE)

    def test_the_list_is_open(self) -> None:
        """A client that was generated today reads a code that is added tomorrow."""
        for place, response in responses():
            if contract.codes_of(response):
                status = int(place.rpartition(" ")[2])
                contract.check_schema(response, {"code": "new_one", "message": "m", "status": status}, place)
        assert "further ones may be added" in _schema("Error", "code")["description"]

    def test_codes_stand_at_their_status(self) -> None:
        """The error codes of each response belong to its status, and its description names them."""
        for place, response in responses():
            status = int(place.rpartition(" ")[2])
            if status >= 400:
                codes = contract.codes_of(response)
                assert codes, place
                assert {BY_CODE[code].status for code in codes} == {status}, place
                assert all(f"`{code}`" in response["description"] for code in codes), place

    def test_every_code_of_the_interface_is_somewhere(self) -> None:
        """A response has each error code, except method_not_allowed, which the document's text describes."""
        found = {code for _, response in responses() for code in contract.codes_of(response)}
        assert found == set(BY_CODE) - {"method_not_allowed"}
        assert "`method_not_allowed`" in contract.document()["info"]["description"]

    def test_the_error_shape(self) -> None:
        """Exactly three members, all required, now and later."""
        error = contract.document()["components"]["schemas"]["Error"]
        assert set(error["properties"]) == set(error["required"]) == {"code", "message", "status"}
        assert error["additionalProperties"] is False


class TestForGenerators:
    """What programs that read the document make of it: clients, validators and mocks of other languages."""

    def test_errors_are_one_schema(self) -> None:
        """Each is Error itself: a schema made for one response is dropped or renamed by most generators."""
        for place, response in responses():
            if int(place[-3:]) >= 400:
                schema = response["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Error"}, place

    def test_patterns_need_no_looking_around(self) -> None:
        """Rust's engine, like RE2 without look-ahead, takes them; none has `\\u`, which RE2 lacks too, or an
        escape of a byte beyond ASCII, by which a Ruby file with UTF-8 can't be loaded."""
        patterns = [node["pattern"] for node in _nodes(contract.document()) if "pattern" in node]
        assert len(patterns) > 10
        for pattern in patterns:
            assert isinstance(pattern, str)
            assert not re.search(r"\\u|\\x[89A-Fa-f]", pattern)
            jsonschema_rs.Draft202012Validator(
                {"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions()
            )
        with pytest.raises(jsonschema_rs.ValidationError):
            jsonschema_rs.Draft202012Validator(
                {"pattern": "^(?!a)b"}, pattern_options=jsonschema_rs.RegexOptions()
            )

    def test_the_guide_renames_what_go_makes_twice(self) -> None:
        """Go's generator makes a function `NewPet` for the type `Pet`: the documented option renames each
        such schema, to a name that is free."""
        names = set(contract.document()["components"]["schemas"])
        text = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
        [option] = re.findall(r"-g go .*\n +--model-name-mappings (\S+)", text)
        mapped = dict(pair.split("=") for pair in option.split(","))
        assert set(mapped) == {f"New{name}" for name in names} & names
        given = set(mapped.values())
        assert not given & (names | {f"New{name}" for name in names | given})

    def test_what_is_enumerated_has_no_other_bound(self) -> None:
        """Orval for Zod writes both in an order that does not compile."""
        bounds = {"minLength", "maxLength", "pattern", "minimum", "maximum"}
        enumerated = [node for node in _nodes(contract.document()) if isinstance(node.get("enum"), list)]
        assert enumerated
        assert [node for node in enumerated if bounds & node.keys()] == []

    def test_no_bound_is_rounded(self) -> None:
        """JavaScript, and pydantic from JSON, read the ends of int64 as other numbers; `format` says them."""
        bounds = [
            node[name]
            for node in _nodes(contract.document())
            for name in ("minimum", "maximum")
            if name in node and "type" in node
        ]
        assert len(bounds) > 10
        assert max(map(abs, bounds)) < 2**53

    def test_an_optional_member_has_no_default(self) -> None:
        """Generators make a member with one required, so that the smallest body would not compile."""
        schemas = contract.document()["components"]["schemas"]
        assert not [node for node in _nodes(schemas) if "default" in node]

    def test_the_example_of_every_parameter_satisfies_its_schema(self) -> None:
        """Documentation tools send it as it stands."""
        for name, parameter in contract.document()["components"]["parameters"].items():
            contract.check_value(parameter["schema"], parameter["example"], name)

    @pytest.mark.parametrize("path", ["/pets", "/store/orders"])
    def test_the_examples_of_a_list_are_accepted(self, path: str) -> None:
        """Each alone, which a key of any level and account may send, and all in one request."""
        examples = _examples(path)
        assert "cursor" in [name for name, _, _ in examples]
        for sent in (examples, *([example] for example in examples)):
            after_id = 1 if ("after", "=", "1") in sent else 0
            if path == "/pets":
                assert read_page_query(sent).after_id == after_id
            else:
                caller = Caller(1, 5, limits_of(60, 1_000), access=Access.READ)
                assert read_order_query(sent, caller).after_id == after_id

    def test_each_creation_has_its_own_idempotency_key(self) -> None:
        """A program that sends the examples of one and then of the other is not refused."""
        keys = [_examples(path, "post", "header")[0] for path in ("/pets", "/store/orders", "/webhooks")]
        assert {name for name, _, _ in keys} == {"Idempotency-Key"}
        assert len(set(keys)) == len(keys)

    def test_every_type_of_event_can_be_asked_for(self) -> None:
        """Each by its name, and with those of its group."""
        [types] = [
            parameter["schema"]["items"]["enum"]
            for parameter in map(contract.resolve, documented()["/events", "GET"]["parameters"])
            if parameter["name"] == "type"
        ]
        assert types == list(PATTERNS)

    def test_every_tag_is_described(self) -> None:
        """An operation has one, and those of the document are used."""
        tags = {tag for operation in documented().values() for tag in operation["tags"]}
        assert [tag["name"] for tag in contract.document()["tags"]] == [
            "pets",
            "categories",
            "orders",
            "events",
            "webhooks",
            "usage",
        ]
        assert tags == {tag["name"] for tag in contract.document()["tags"]}

    def test_the_description_is_short(self) -> None:
        """Generators repeat it at the head of each file; the guide has the rest."""
        assert len(contract.document()["info"]["description"].split()) <= 100

    def test_plain_numbers_and_texts_have_no_names(self) -> None:
        """Generators wrap what has a name in a class: only objects, arrays and enums have one.

        Nor has a parameter the name of a schema: one of both becomes `PetId2`.
        """
        components = contract.document()["components"]
        assert not set(components["schemas"]) & set(components["parameters"])
        for name, schema in contract.document()["components"]["schemas"].items():
            assert schema["type"] in ("object", "array") or "enum" in schema, name


def _examples(path: str, method: str = "get", place: str = "query") -> list[tuple[str, str, str]]:
    """The examples of an operation's parameters, as the pipeline reads them from a query."""
    parameters = map(contract.resolve, contract.document()["paths"][path][method]["parameters"])
    listed = ((each["name"], each["example"]) for each in parameters if each["in"] == place)
    return [
        (name, "=", str(value))
        for name, values in listed
        for value in (values if isinstance(values, list) else [values])
    ]


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    """Every object in a document."""
    if isinstance(node, dict):
        yield node
    if isinstance(node, dict | list):
        for each in node.values() if isinstance(node, dict) else node:
            yield from _nodes(each)


class TestHeaders:
    """What every response carries."""

    def test_of_each_response(self) -> None:
        """The limits in both forms, the request id and the rest, and what the status asks for."""
        for place, response in responses():
            declared = {
                name for name, h in response["headers"].items() if contract.resolve(h).get("required")
            }
            assert declared >= {
                "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Policy",
                "RateLimit", "X-Request-Id", "Cache-Control", "X-Content-Type-Options",
            }, place  # fmt: skip
            method, path, status = place.split()
            codes = contract.codes_of(response)
            always_retried = status in ("429", "503") or codes == {"idempotency_key_in_use"}
            assert ("Retry-After" in declared) == always_retried, place
            assert ("WWW-Authenticate" in declared) == (status == "401"), place
            deprecated = documented()[path, method].get("deprecated", False)
            if int(status) < 400:
                assert ({"Deprecation", "Sunset", "Link"} <= declared) == deprecated, place
            elif deprecated:
                assert {"Deprecation", "Sunset"} <= set(response["headers"]) - declared, place
            assert ("help" in str(contract.resolve(response["headers"].get("Link", {})))) == (
                int(status) >= 400
            ), place
            assert ("Location" in declared) == (status == "201"), place

    def test_every_example_satisfies_its_schema(self) -> None:
        """Bodies and headers that the document shows are what it declares."""
        for place, response in responses():
            content = response.get("content", {}).get("application/json", {})
            for example in content.get("examples", {}).values():
                contract.check_body(response, example["value"], place)
            for name, header in response["headers"].items():
                resolved = contract.resolve(header)
                contract.check_headers(
                    {"headers": {name: resolved}}, {name.lower(): str(resolved["example"])}
                )


class TestNumbers:
    """Numbers stand in one place of the code, and the document says the same."""

    def test_schemas_have_the_bounds_of_the_code(self) -> None:
        """Bounds of names, integers, pages and states."""
        components = contract.document()["components"]
        schemas, parameters = components["schemas"], components["parameters"]
        for pet in ("NewPet", "Pet", "PetChange"):
            assert _schema(pet, "name")["maxLength"] == NAME_MAX_CHARACTERS
            assert _schema(pet, "categoryId")["format"] == "int64"
        for identifier in (_schema("Pet", "id"), _schema("Order", "id"), parameters["PetId"]["schema"]):
            assert (identifier["format"], identifier["minimum"]) == ("int64", 1)
        assert schemas["PetStatus"]["enum"] == list(PetStatus)
        assert parameters["Id"]["schema"]["maxItems"] == IDS_MAX
        assert schemas["OrderStatus"]["enum"] == list(OrderStatus)
        assert schemas["NewOrder"]["properties"]["quantity"]["const"] == QUANTITY
        assert parameters["OrderIdFilter"]["schema"]["maxItems"] == IDS_MAX
        limit = parameters["Limit"]["schema"]
        assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 100, 20)

    def test_dates_of_deprecation_and_removal_are_those_of_the_code(self) -> None:
        """The document announces what the service does."""
        headers = contract.document()["components"]["headers"]
        assert headers["Deprecation"]["schema"]["const"] == f"@{DEPRECATED_AT}"
        assert headers["Sunset"]["example"] == "Thu, 05 Dec 2030 00:00:00 GMT"
        assert PUBLISHED_REMOVAL.timestamp() == 1_922_659_200

    def test_the_policy_stands_where_clients_read(self) -> None:
        """Only additive changes within /v1, and twelve months from a deprecation to the removal."""
        for text in (
            contract.document()["info"]["description"],
            (ROOT / "docs" / "guide.md").read_text(encoding="utf-8"),
        ):
            assert re.search(r"only\s+additive", text)
            assert re.search(r"[Aa]t least (twelve|12)\s+months", text)
        assert PUBLISHED_REMOVAL.timestamp() - DEPRECATED_AT > 365 * 86_400

    def test_sizes_in_prose_are_those_of_the_code(self) -> None:
        """The document's descriptions and example messages name the size limits that the code has."""
        text = json.dumps(contract.document())
        for number in (body.BODY_MAX_BYTES, HeadersTooLarge.MAX_BYTES, UriTooLong.MAX_BYTES):
            assert f"{number} bytes" in text
            assert f"{number // 1024} KiB" in text

    def test_every_window_of_the_limits(self) -> None:
        """The limit and the use of a window are members of GET /usage, its policy and its rest stand in the
        headers."""
        components = contract.document()["components"]
        members = components["schemas"]["Usage"]["required"]
        assert [name for name in members if name.startswith("per")] == [kind.limit_member for kind in WINDOWS]
        assert {kind.name for kind in WINDOWS} <= set(members)
        policy = ", ".join(f'"{kind.name}";q=[0-9]+;w={kind.seconds}' for kind in WINDOWS)
        assert policy in components["headers"]["RateLimit-Policy"]["schema"]["pattern"]
        left = ", ".join(f'"{kind.name}";r=[0-9]+;t=[0-9]+' for kind in WINDOWS)
        assert left in components["headers"]["RateLimit"]["schema"]["pattern"]

    def test_additions_are_marked(self) -> None:
        """What goes beyond the published interface says so."""
        components = contract.document()["components"]
        operations = {operation["operationId"]: operation for operation in documented().values()}
        for named, published in (
            (operations, {"listPets", "createPet", "getPet"}),
            (components["parameters"], {"Limit", "Status", "PetId"}),
            (components["schemas"], PUBLISHED_SCHEMAS),
        ):
            marked = {name for name, node in named.items() if node.get("x-petstore-addition") is True}
            assert marked == set(named) - published
