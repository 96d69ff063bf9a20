"""A request of each operation with the values of the examples: what samples and forms begin with."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from petstore.site.schemas import Contract, Node, example_of
from petstore.web.addresses import EXAMPLE

# A placeholder: rendered.py replaces it with the reader's own base address.
BASE = f"{EXAMPLE}/v1"
IDEMPOTENCY_KEY = "Idempotency-Key"
# The optional query parameters that are used.
_QUERY = ("status",)
# A caller decides by them; the other errors are faults of the program or of the day.
_DECIDED_BY = ("not_found", "conflict")


class Call(msgspec.Struct, frozen=True):
    """A request with example values, and what its answer is."""

    operation: str
    method: str
    path: str
    in_path: dict[str, Any]
    query: dict[str, Any]
    # Empty where the operation takes none.
    idempotency_key: str
    # None without a body.
    body: Any
    # What the answer, or an entry of its list, is called: pet. Empty without one, or with its promise alone.
    noun: str
    is_list: bool
    # The list goes on where `Link` says.
    is_paged: bool
    # The codes of _DECIDED_BY that the operation has.
    codes: tuple[str, ...]

    @property
    def address(self) -> str:
        return BASE + re.sub(r"\{(\w+)\}", lambda found: quote(str(self.in_path[found[1]]), ""), self.path)

    @property
    def address_with_query(self) -> str:
        return self.address + (f"?{urlencode(self.query)}" if self.query else "")


def example_call(contract: Contract, method: str, path: str, node: Node) -> Call:
    """The request of an operation with the first value of each example."""
    values = {
        (each["in"], each["name"]): _single(example_of(each, contract.at(each["schema"])))
        for each in map(contract.at, node.get("parameters", ()))
    }
    responses = {status: contract.at(each) for status, each in node["responses"].items()}
    status, success = next(each for each in responses.items() if each[0].startswith("2"))
    schema = contract.content(success).get("schema") if status != "202" else None
    is_list = schema is not None and contract.at(schema).get("type") == "array"
    codes = {code for response in responses.values() for code in contract.codes(response)}
    return Call(
        operation=node["operationId"],
        method=method.upper(),
        path=path,
        in_path={name: value for (location, name), value in values.items() if location == "path"},
        query={name: values["query", name] for name in _QUERY if values.get(("query", name)) is not None},
        idempotency_key=str(values.get(("header", IDEMPOTENCY_KEY), "")),
        body=_body(contract, node),
        noun=_noun(contract, schema) if schema is not None else "",
        is_list=is_list,
        is_paged=is_list and "Link" in success.get("headers", {}),
        codes=tuple(code for code in _DECIDED_BY if code in codes),
    )


def _body(contract: Contract, node: Node) -> Any:
    if "requestBody" not in node:
        return None
    content = contract.content(node["requestBody"])
    return example_of(content, contract.at(content["schema"]))


def _noun(contract: Contract, schema: Node) -> str:
    full = contract.at(schema)
    named = full["items"] if full.get("type") == "array" else schema
    # WebhookWithSecret is a webhook.
    name = named.get("$ref", "answer").rpartition("/")[2]
    return str(name.partition("With")[0].lower())


def _single(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value
