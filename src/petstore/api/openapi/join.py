"""Joins the parts of the contract to one OpenAPI document, and writes out what they keep short.

An operation names its success in full, and under `errors` the errors that are its own. Added here: the
headers that every response carries, the errors of every operation (`applies` in errors.yaml), and a sentence
about the level of key that it needs.
"""

from __future__ import annotations

from typing import Any

Node = dict[str, Any]

_KINDS = ("parameters", "headers", "responses", "schemas")
_EVERY_RESPONSE = (
    "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "RateLimit-Policy", "RateLimit",
    "X-Request-Id", "Cache-Control", "X-Content-Type-Options",
)  # fmt: skip
_DEPRECATED = {"Deprecation": "Deprecation", "Sunset": "Sunset", "Link": "DeprecationLink"}
_DEPRECATED_TEXT = " Also carries the headers of the deprecation."
_LEVELS = {"read": "`read`, `write` or `manage`", "write": "`write` or `manage`", "manage": "`manage`"}
# The answer to methods that the document does not describe, so that no operation can name it.
_UNDESCRIBED = "MethodNotAllowed"


def join(service: Node, parts: list[Node]) -> Node:
    """One document of `service` and the paths, parameters, headers, responses and schemas of all parts.

    Raises KeyError when an operation names an error that no part has.
    """
    components: dict[str, Node] = {"securitySchemes": service.pop("securitySchemes")}
    components |= {kind: _all(parts, kind) for kind in _KINDS}
    errors, components["responses"] = components["responses"], {}
    [applies] = (part["applies"] for part in parts if "applies" in part)
    service["paths"] = _all(parts, "paths")
    for item in service["paths"].values():
        for method, operation in item.items():
            deprecated = operation.get("deprecated", False)
            operation["description"] += f"\nNeeds a key of level {_LEVELS[operation['x-petstore-access']]}.\n"
            for response in operation["responses"].values():
                response["headers"] = _headers(response.get("headers", {}), deprecated)
            for name, error in _errors_of(method, operation, applies, errors).items():
                full = f"Deprecated{name}" if deprecated else name
                components["responses"][full] = _response(error, deprecated)
                operation["responses"][str(error["status"])] = _reference("responses", full)
            operation["responses"] = dict(sorted(operation["responses"].items()))
    components["responses"][_UNDESCRIBED] = _response(errors[_UNDESCRIBED], deprecated=False)
    return {**service, "components": components}


def _all(parts: list[Node], kind: str) -> Node:
    return {name: node for part in parts for name, node in part.get(kind, {}).items()}


def _errors_of(method: str, operation: Node, applies: dict[str, list[str]], errors: Node) -> Node:
    """The errors of an operation by name; its own ones replace those of the same status."""
    names = applies["always"] + applies["reading" if method == "get" else "changing"]
    if "requestBody" in operation:
        names += applies["with-a-body"]
    if method == "patch":
        names += applies["patching"]
    if _reference("parameters", "Idempotency-Key") in operation["parameters"]:
        names += applies["with-an-idempotency-key"]
    own = operation.pop("errors", [])
    by_status = {errors[name]["status"]: name for name in (*names, *own)}
    return {name: errors[name] for _status, name in sorted(by_status.items())}


def _headers(own: Node, deprecated: bool) -> Node:
    names = {name: name for name in _EVERY_RESPONSE} | (_DEPRECATED if deprecated else {})
    return {name: _reference("headers", component) for name, component in names.items()} | own


def _response(error: Node, deprecated: bool) -> Node:
    """The response of an error, with an example for each of its messages."""
    status: int = error["status"]
    own = {name: _reference("headers", component) for name, component in error.get("headers", {}).items()}
    examples = {
        name: {"value": {"code": code, "message": message, "status": status}}
        for code, messages in error["errors"].items()
        for name, message in (messages if isinstance(messages, dict) else {code: messages}).items()
    }
    codes = {"code": {"examples": list(error["errors"])}, "status": {"const": status}}
    schema = {"allOf": [_reference("schemas", "Error"), {"properties": codes}]}
    return {
        "description": error["description"] + (_DEPRECATED_TEXT if deprecated else ""),
        "headers": _headers(own, deprecated),
        "content": {"application/json": {"schema": schema, "examples": examples}},
    }


def _reference(kind: str, name: str) -> Node:
    return {"$ref": f"#/components/{kind}/{name}"}
