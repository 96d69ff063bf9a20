"""The OpenAPI document as a judge of answers: which statuses, headers and bodies an operation may answer."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any
from unittest.mock import Mock

import jsonschema_rs
import msgspec

from petstore import config
from petstore.api.operations import Handlers, operations
from petstore.api.pipeline.routing import Operation
from petstore.wiring.operations import openapi_document

# Said by the protocol or by the browser's rules, not by the operation.
_UNDECLARED = {"connection", "content-type", "content-length", "date", "vary"}
_METHODS = {"GET": "get", "HEAD": "get", "POST": "post", "PATCH": "patch", "DELETE": "delete"}
_ERROR = {"$ref": "#/components/schemas/Error"}
_METHODS_OF_A_PATH = {"required": True, "schema": {"type": "string", "pattern": "^[A-Z]+(, [A-Z]+)*$"}}


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """The document as it is served with default settings."""
    served: dict[str, Any] = msgspec.json.decode(openapi_document(config.load({})).as_json())
    return served


def resolve(node: dict[str, Any]) -> dict[str, Any]:
    """What a reference inside the document refers to."""
    while "$ref" in node:
        found: Any = document()
        for step in node["$ref"].removeprefix("#/").split("/"):
            found = found[step.replace("~1", "/").replace("~0", "~")]
        node = found
    return node


def table() -> list[Operation]:
    """The rows of every operation. Their handlers do nothing."""
    return operations(Handlers(*[Mock()] * len(Handlers._fields)))


@lru_cache(maxsize=1)
def _templates() -> list[tuple[re.Pattern[bytes], str]]:
    found = ((re.sub(r"\{[^}]+\}", "[^/]+", template), template) for template in document()["paths"])
    return [(re.compile(f"/v1{pattern}".encode()), template) for pattern, template in found]


def template_of(path: bytes) -> str | None:
    """The template in the document that a raw path belongs to."""
    return next((template for pattern, template in _templates() if pattern.fullmatch(path)), None)


def response_of(path: bytes, method: str, status: int) -> dict[str, Any] | None:
    """What the document says about an answer; None where it describes no such operation.

    Fails when the document describes the operation but not the status.
    """
    template = template_of(path)
    if template is None:
        return None
    operation = document()["paths"][template].get(_METHODS.get(method, ""))
    if status == 405:  # of any other method, or rehearsed
        return _method_not_allowed()
    if operation is None:
        return None
    responses = operation["responses"]
    assert str(status) in responses, (
        f"{method} {template} answered {status}, which the document does not know"
    )
    return resolve(responses[str(status)])


def operation_of(path: bytes, method: str) -> dict[str, Any]:
    """What the document says about the operation that a request belongs to; empty where there is none."""
    item = document()["paths"].get(template_of(path), {})
    return dict(item.get(_METHODS.get(method, ""), {}))


def _method_not_allowed() -> dict[str, Any]:
    """The answer to what the document does not describe: as another error's, with `Allow`."""
    another = resolve({"$ref": "#/components/responses/UriTooLong"})
    example = {"value": {"code": "method_not_allowed", "message": "m", "status": 405}}
    return {
        "headers": another["headers"] | {"Allow": _METHODS_OF_A_PATH},
        "content": {"application/json": {"schema": _ERROR, "examples": {"405": example}}},
    }


@lru_cache(maxsize=1_000)
def _validator(schema: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(
        {**json.loads(schema), "components": document()["components"]}, validate_formats=True
    )


def check_value(schema: dict[str, Any], value: Any, where: str) -> None:
    """A value satisfies a schema of the document."""
    errors = [error.message for error in _validator(json.dumps(schema)).iter_errors(value)]
    assert not errors, f"{where}: {value!r} is not what the document says: {errors}"


def check_headers(response: dict[str, Any], headers: dict[str, str]) -> None:
    """Every declared header that must be there is there, as declared, and none is there undeclared."""
    declared = {name.lower(): resolve(header) for name, header in response.get("headers", {}).items()}
    for name, header in declared.items():
        if name not in headers:
            assert not header.get("required"), f"{name} is missing"
            continue
        schema = resolve(header["schema"])
        value: object = headers[name]
        if schema.get("type") == "integer":
            assert re.fullmatch("0|[1-9][0-9]*", headers[name]), f"{name}: {value!r} is not a plain integer"
            value = int(headers[name])
        check_value(schema, value, name)
    sent = {name for name in headers if not name.startswith("access-control-")}
    assert sent <= set(declared) | _UNDECLARED, f"undeclared: {sent - set(declared) - _UNDECLARED}"


def codes_of(response: dict[str, Any]) -> set[str]:
    """The error codes that a response lists, as examples since the list is open; empty for no error."""
    content = response.get("content", {}).get("application/json", {})
    if content.get("schema") != _ERROR:
        return set()
    return {example["value"]["code"] for example in content["examples"].values()}


def check_schema(response: dict[str, Any], body: Any, where: str) -> None:
    """The body satisfies the schema; what a generated client looks at."""
    check_value(response["content"]["application/json"]["schema"], body, where)


def check_body(response: dict[str, Any], body: Any, where: str) -> None:
    """The body is what the document declares for `application/json`, an error's code one that it lists."""
    check_schema(response, body, where)
    if codes := codes_of(response):
        assert body["code"] in codes, f"{where}: {body['code']} is not among {sorted(codes)}"
