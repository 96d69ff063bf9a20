"""The form with which a reader tries an operation: it sends what the samples send."""

from __future__ import annotations

import json

import msgspec

from petstore.site.calls import Call
from petstore.site.schemas import Contract, Node


class FormField(msgspec.Struct, frozen=True):
    """A parameter. `value` is what the form begins with; empty is not sent."""

    name: str
    location: str
    required: bool
    value: str
    # Nothing where any text may be given.
    choices: list[str]
    # Takes several values, with commas between them.
    is_list: bool


class Form(msgspec.Struct, frozen=True):
    """`body` is JSON to begin with, None where the operation takes no body."""

    fields: list[FormField]
    body: str | None


def form(contract: Contract, node: Node, call: Call) -> Form:
    parameters = [contract.at(each) for each in node.get("parameters", ())]
    body = None if call.body is None else json.dumps(call.body, indent=2, ensure_ascii=False)
    return Form([_field(contract, each, call) for each in parameters], body)


def _field(contract: Contract, parameter: Node, call: Call) -> FormField:
    schema = contract.at(parameter["schema"])
    name, location = parameter["name"], parameter["in"]
    # Idempotency-Key begins empty: a second try with the same one would be answered with the first's result.
    used = {"path": call.in_path, "query": call.query}.get(location, {})
    return FormField(
        name,
        location,
        parameter.get("required", False),
        str(used.get(name, "")),
        [str(value) for value in schema.get("enum", ())],
        schema.get("type") == "array",
    )
