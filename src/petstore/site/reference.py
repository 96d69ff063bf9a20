"""What the reference page shows of the OpenAPI document: operations by tag, headers, errors, schemas."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import msgspec
from markupsafe import Markup

from petstore.core.keys import Access
from petstore.site.calls import example_call
from petstore.site.descriptions import block, inline
from petstore.site.documents import highlight
from petstore.site.forms import Form, form
from petstore.site.samples import Sample, samples
from petstore.site.schemas import Contract, Member, Node, example_of

_METHODS = ("get", "post", "put", "patch", "delete")


class Example(msgspec.Struct, frozen=True):
    summary: str
    # Formatted and coloured.
    code: Markup


class Header(msgspec.Struct, frozen=True):
    name: str
    description: Markup
    example: str


class Body(msgspec.Struct, frozen=True):
    media_types: list[str]
    description: Markup
    type: str
    members: list[Member]
    examples: list[Example]


class Answer(msgspec.Struct, frozen=True):
    """A success. `headers` are those that not every answer has."""

    status: str
    description: Markup
    headers: list[Header]
    type: str
    members: list[Member]
    examples: list[Example]


class Refusal(msgspec.Struct, frozen=True):
    """An error: its status, its codes and when it is the answer."""

    status: str
    codes: tuple[str, ...]
    when: Markup
    # Names of headers that not every error has.
    headers: tuple[str, ...]


class Operation(msgspec.Struct, frozen=True):
    """`level` says in words which keys may use it. `refusals` are its own, `shared` are other tags' too.

    `parameters` are without the parameters of every operation.
    """

    name: str
    method: str
    path: str
    title: str
    deprecated: bool
    addition: bool
    level: str
    description: Markup
    parameters: list[Member]
    body: Body | None
    answers: list[Answer]
    refusals: list[Refusal]
    shared: list[Refusal]
    form: Form
    samples: list[Sample]


class Group(msgspec.Struct, frozen=True):
    name: str
    operations: list[Operation]


class DocumentedSchema(msgspec.Struct, frozen=True):
    name: str
    description: Markup
    members: list[Member]


class Reference(msgspec.Struct, frozen=True):
    """The whole page. `always` has the headers of every answer, `errors` those that every error has besides.

    `parameters` may be sent to every operation, `refusals` are those that operations of several tags share.
    """

    groups: list[Group]
    authentication: Markup
    parameters: list[Member]
    refusals: list[Refusal]
    always: list[Header]
    errors: list[Header]
    schemas: list[DocumentedSchema]


def read(document: Node) -> Reference:
    """What the page shows of a document."""
    contract = Contract(document)
    reader = _Reader(contract)
    schemes = document["components"].get("securitySchemes", {})
    by_tag: dict[str, list[Operation]] = {tag["name"]: [] for tag in document.get("tags", ())}
    for method, path, node in reader.described:
        by_tag.setdefault(node["tags"][0], []).append(reader.operation(method, path, node))
    return Reference(
        [Group(name, operations) for name, operations in by_tag.items() if operations],
        block("\n".join(scheme.get("description", "") for scheme in schemes.values())),
        [contract.parameter(each) for each in reader.parameters],
        sorted(reader.shared, key=lambda refusal: refusal.status),
        [_header(name, node) for name, node in reader.always.items()],
        [_header(name, node) for name, node in reader.errors.items()],
        [
            DocumentedSchema(name, inline(schema.get("description", "")), contract.members(schema))
            for name, schema in document["components"]["schemas"].items()
            if "properties" in contract.at(schema)
        ],
    )


class _Reader:
    """Reads operations, and finds first what they have in common."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self.described = list(_described(contract))
        responses = [
            contract.at(each) for _, _, node in self.described for each in node["responses"].values()
        ]
        refused = [each for each in responses if contract.codes(each)]
        self.always = _common(contract, responses)
        self.errors = {
            name: node for name, node in _common(contract, refused).items() if name not in self.always
        }
        taken = [each for _, _, node in self.described for each in node.get("parameters", ())]
        self.parameters = [
            each
            for number, each in enumerate(taken)
            if taken.count(each) == len(self.described) and each not in taken[:number]
        ]
        tags: dict[Refusal, set[str]] = {}
        for _, _, node in self.described:
            for refusal in self._refusals(node):
                tags.setdefault(refusal, set()).add(node["tags"][0])
        self.shared = [refusal for refusal, those in tags.items() if len(those) > 1]

    def operation(self, method: str, path: str, node: Node) -> Operation:
        call = example_call(self._contract, method, path, node)
        refusals = self._refusals(node)
        return Operation(
            name=node["operationId"],
            method=method.upper(),
            path=path,
            title=node["summary"].removesuffix(" (deprecated)"),
            deprecated=node.get("deprecated", False),
            addition=node.get("x-petstore-addition", False),
            level=Access(node["x-petstore-access"]).sufficient(),
            description=block(node.get("description", "")),
            parameters=[
                self._contract.parameter(each)
                for each in node.get("parameters", ())
                if each not in self.parameters
            ],
            body=self._body(node["requestBody"]) if "requestBody" in node else None,
            answers=self._answers(node),
            refusals=[each for each in refusals if each not in self.shared],
            shared=[each for each in refusals if each in self.shared],
            form=form(self._contract, node, call),
            samples=samples(call),
        )

    def _answers(self, node: Node) -> list[Answer]:
        responses = ((status, self._contract.at(each)) for status, each in node["responses"].items())
        return [self._answer(*each) for each in responses if not self._contract.codes(each[1])]

    def _refusals(self, node: Node) -> list[Refusal]:
        responses = ((status, self._contract.at(each)) for status, each in node["responses"].items())
        return [self._refusal(*each) for each in responses if self._contract.codes(each[1])]

    def _body(self, node: Node) -> Body:
        body = self._contract.at(node)
        said = inline(body.get("description", ""))
        return Body(list(body["content"]), said, *self._content(self._contract.content(body)))

    def _answer(self, status: str, response: Node) -> Answer:
        headers = [
            _header(name, self._contract.at(header))
            for name, header in response.get("headers", {}).items()
            if name not in self.always
        ]
        content = self._contract.content(response)
        said = inline(response["description"])
        return Answer(status, said, headers, *self._content(content))

    def _content(self, content: Node) -> tuple[str, list[Member], list[Example]]:
        """Type, members and examples of a body."""
        if "schema" not in content:
            return "", [], []
        schema = content["schema"]
        full = self._contract.at(schema)
        return (
            self._contract.type_of(schema),
            self._contract.members(schema),
            list(_examples(content, full)),
        )

    def _refusal(self, status: str, response: Node) -> Refusal:
        headers = response.get("headers", {}).items()
        special = (
            name
            for name, node in headers
            if name not in self.always | self.errors and self._contract.at(node).get("required")
        )
        said = inline(response["description"])
        return Refusal(status, self._contract.codes(response), said, tuple(special))


def _described(contract: Contract) -> Iterator[tuple[str, str, Node]]:
    for path, item in contract.document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield method, path, item[method]


def _common(contract: Contract, responses: list[Node]) -> dict[str, Node]:
    """The headers that all of the responses have, as the first response describes them."""
    counts = Counter(name for response in responses for name in response.get("headers", {}))
    first = responses[0].get("headers", {}) if responses else {}
    return {name: contract.at(node) for name, node in first.items() if counts[name] == len(responses)}


def _header(name: str, node: Node) -> Header:
    example = example_of(node, node.get("schema", {}))
    return Header(name, inline(node.get("description", "")), "" if example is None else str(example))


def _examples(content: Node, schema: Node) -> Iterator[Example]:
    shown = content.get("examples") or {}
    if not shown and example_of(content, schema) is not None:
        shown = {"": {"value": example_of(content, schema)}}
    for each in shown.values():
        text = json.dumps(each["value"], indent=2, ensure_ascii=False)
        yield Example(each.get("summary", ""), Markup(highlight(text, "json")))
