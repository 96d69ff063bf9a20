"""Joins the parts of the contract to one OpenAPI document, and writes out what they keep short.

An operation names its success in full, and under `errors` the errors that are its own. Added here: the
headers that every response carries, the errors of every operation (`applies` in errors.yaml),
what makes a request conditional, and the types of events. Schemas of plain numbers and texts are written out
where they are used.
"""

from __future__ import annotations

from typing import Any

from petstore.core.events import PATTERNS, TYPES
from petstore.core.keys import Access
from petstore.core.rehearsal import EVENT_TYPES
from petstore.core.webhooks import ALL

Node = dict[str, Any]

_KINDS = ("parameters", "headers", "responses", "schemas")
_EVERY_RESPONSE = (
    "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Policy", "RateLimit",
    "X-Environment",
    "X-Request-Id", "Cache-Control", "X-Content-Type-Options",
)  # fmt: skip
_DEPRECATED = {"Deprecation": "Deprecation", "Sunset": "Sunset", "Link": "DeprecationLink"}
_OF_ERRORS = {"Link": "HelpLink", "Petstore-Rehearsed": "Petstore-Rehearsed"}
# An error that other operations have too: only getPet's has these.
_DEPRECATED_ERROR = {"Deprecation": "ErrorDeprecation", "Sunset": "ErrorSunset"}
_KEYED = ("Idempotency-Key", "OrderIdempotencyKey", "WebhookIdempotencyKey")
# The header by which an operation is made conditional.
_CONDITIONS = {"get": "If-None-Match", "patch": "If-Match", "delete": "If-Match"}
_CODING = "Content-Encoding"
_KNOWN = "The client has it: `If-None-Match` has its tag. No body. Costs one request."


def join(service: Node, parts: list[Node]) -> Node:
    """One document of `service` and the paths, parameters, headers, responses and schemas of all parts.

    Raises KeyError when an operation names an error that no part has.
    """
    components: dict[str, Node] = {"securitySchemes": service.pop("securitySchemes")}
    components |= {kind: _all(parts, kind) for kind in _KINDS}
    errors, components["responses"] = components["responses"], {}
    [applies] = (part["applies"] for part in parts if "applies" in part)
    components["parameters"]["EventTypeFilter"]["schema"]["items"]["enum"] = list(PATTERNS)
    components["schemas"]["EventRequest"]["properties"]["type"]["enum"] = list(EVENT_TYPES)
    components["schemas"]["WebhookType"]["enum"] = [ALL, *PATTERNS]
    service["webhooks"], components["pathItems"] = _sent(parts)
    service["paths"] = _all(parts, "paths")
    for item in service["paths"].values():
        for method, operation in item.items():
            deprecated = operation.get("deprecated", False)
            if method in _CONDITIONS:
                operation["parameters"].append(_reference("parameters", _CONDITIONS[method]))
            answers = {
                status: _success(method, status, response, deprecated)
                for status, response in operation["responses"].items()
            }
            if method == "get":
                kept = {name: each for name, each in answers["200"]["headers"].items() if name != _CODING}
                answers["304"] = {"description": _KNOWN, "headers": kept}
            for name, error in _errors_of(method, operation, applies, errors).items():
                response = components["responses"].setdefault(name, _response(error))
                if deprecated:
                    response["headers"] |= _references(_DEPRECATED_ERROR)
                answers[str(error["status"])] = _reference("responses", name)
            operation["responses"] = answers
    scalars = {name: schema for name, schema in components["schemas"].items() if _is_scalar(schema)}
    for name in scalars:
        del components["schemas"][name]
    document: Node = _written_out({**service, "components": components}, scalars)
    return document


def _sent(parts: list[Node]) -> tuple[Node, Node]:
    """What webhooks are sent, by the types of events, and the path items that it refers to: openapi-generator
    makes calls of what stands in `webhooks` itself.
    """
    [sent] = (part["sent"] for part in parts if "sent" in part)
    webhooks, items = {}, {}
    for kind in TYPES:
        name = f"on{kind.name.title().replace('.', '')}"
        items[name] = {"post": {"operationId": name, "summary": kind.summary, **sent}}
        webhooks[kind.name] = _reference("pathItems", name)
    return webhooks, items


def say_levels_and_codes(document: Node) -> None:
    """Add to each operation the levels of key that it takes, and to each error its codes, as sentences.

    Generators of code and of pages show descriptions, and neither `x-petstore-access` nor examples.
    """
    for item in document["paths"].values():
        for operation in item.values():
            levels = Access(operation["x-petstore-access"]).sufficient("`{}`")
            operation["description"] += f"\nNeeds a key of level {levels}.\n"
    for response in document["components"]["responses"].values():
        [content] = response["content"].values()
        codes = dict.fromkeys(f"`{each['value']['code']}`" for each in content["examples"].values())
        response["description"] += f" Code: {' or '.join(codes)}."


def _all(parts: list[Node], kind: str) -> Node:
    return {name: node for part in parts for name, node in part.get(kind, {}).items()}


def _errors_of(method: str, operation: Node, applies: dict[str, list[str]], errors: Node) -> Node:
    """The errors of an operation by name; its own ones replace those of the same status."""
    names = applies["always"] + applies["reading" if method == "get" else "changing"]
    if "requestBody" in operation:
        names += applies["with-a-body"]
    if method == "patch":
        names += applies["patching"]
    if method in ("patch", "delete"):
        names += applies["with-if-match"]
    if any(each["$ref"].rpartition("/")[2] in _KEYED for each in operation["parameters"]):
        names += applies["with-an-idempotency-key"]
    own = operation.pop("errors", [])
    by_status = {errors[name]["status"]: name for name in (*names, *own)}
    return {name: errors[name] for _status, name in sorted(by_status.items())}


def _headers(own: Node) -> Node:
    return _references({name: name for name in _EVERY_RESPONSE}) | own


def _success(method: str, status: str, response: Node, deprecated: bool) -> Node:
    own = (_references(_DEPRECATED) if deprecated else {}) | response.get("headers", {})
    if "content" in response and (method != "post" or status == "201"):
        own |= _references({"ETag": "ETag"})
    if method == "get":
        own |= _references({"Cache-Control": "Revalidated"})
    return {"description": response["description"], "headers": _headers(own)} | {
        name: part for name, part in response.items() if name != "headers"
    }


def _response(error: Node) -> Node:
    """The response of an error, with an example for each of its messages."""
    status: int = error["status"]
    examples = {
        name: {"value": {"code": code, "message": message, "status": status}}
        for code, messages in error["errors"].items()
        for name, message in (messages if isinstance(messages, dict) else {code: messages}).items()
    }
    return {
        "description": error["description"],
        "headers": _headers(_references(error.get("headers", {}) | _OF_ERRORS)),
        "content": {"application/json": {"schema": _reference("schemas", "Error"), "examples": examples}},
    }


def _is_scalar(schema: Node) -> bool:
    """A number or a text. Generators make a class of one with a name, which is of use for an enum only."""
    return schema["type"] not in ("object", "array") and "enum" not in schema


def _written_out(node: Any, scalars: Node) -> Any:
    """A copy in which each reference to a scalar is the scalar itself; members beside the reference win."""
    if isinstance(node, list):
        return [_written_out(each, scalars) for each in node]
    if not isinstance(node, dict):
        return node
    copy = {name: _written_out(each, scalars) for name, each in node.items()}
    kind, _, name = str(copy.get("$ref", "")).rpartition("/")
    if kind != "#/components/schemas" or name not in scalars:
        return copy
    del copy["$ref"]
    mark = "x-petstore-addition"  # belongs to what has a name
    scalar: Node = _written_out(scalars[name], {})
    return {member: value for member, value in scalar.items() if member != mark} | copy


def _references(components: dict[str, str]) -> Node:
    """A reference to a header's component by the header's name."""
    return {name: _reference("headers", component) for name, component in components.items()}


def _reference(kind: str, name: str) -> Node:
    return {"$ref": f"#/components/{kind}/{name}"}
