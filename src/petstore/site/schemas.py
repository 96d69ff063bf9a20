"""Schemas and parameters of the OpenAPI document as rows of a table, references followed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
from markupsafe import Markup

from petstore.site.descriptions import split

Node = dict[str, Any]

# Longer patterns say less than the description beside them.
_PATTERN_SHOWN = 30


class Member(msgspec.Struct, frozen=True):
    """A member of an object, or a parameter.

    `default`, `example` and `values` are JSON for a member, and for a parameter as they are sent.
    """

    # A nested member's name has its owners: `minute.used`, `days[].date`.
    name: str
    # The place of a parameter: path, query or header.
    location: str
    type: str
    required: bool
    deprecated: bool
    # Beyond the published interface 1.0.0.
    addition: bool
    bounds: str
    values: list[str]
    default: str
    example: str
    # The first sentence, and the others.
    description: Markup
    more: Markup


class Contract:
    """An OpenAPI document whose references are followed when a node is read."""

    def __init__(self, document: Node) -> None:
        self.document = document

    def at(self, node: Node) -> Node:
        """The node itself, or what its `$ref` names, with the members beside the `$ref` in front."""
        while "$ref" in node:
            target: Any = self.document
            for step in node["$ref"].removeprefix("#/").split("/"):
                target = target[step.replace("~1", "/").replace("~0", "~")]
            node = {**target, **{name: value for name, value in node.items() if name != "$ref"}}
        return node

    def content(self, node: Node) -> Node:
        """The body of a request or response in its first media type; empty without one."""
        return next(iter(self.at(node).get("content", {}).values()), {})

    def codes(self, response: Node) -> tuple[str, ...]:
        """The codes of an error's examples; nothing for a success."""
        values = [self.at(each)["value"] for each in self.content(response).get("examples", {}).values()]
        errors = [
            value for value in values if isinstance(value, dict) and {"code", "message"} <= value.keys()
        ]
        return tuple(dict.fromkeys(error["code"] for error in errors))

    def name(self, schema: Node) -> str:
        """The name of an object's schema; empty where it has none."""
        name = schema.get("$ref", "").rpartition("/")[2]
        return name if name and "properties" in self.at(schema) else ""

    def type_of(self, schema: Node) -> str:
        """The type of a schema, such as `string`, `integer (int64)` or `array of Pet`."""
        full = self.at(schema)
        if full.get("type") == "array":
            return f"array of {self.type_of(full['items'])}"
        kind = self.name(schema) or _kind(full)
        return f"{kind} ({full['format']})" if "format" in full else kind

    def members(self, schema: Node, prefix: str = "") -> list[Member]:
        """The members of an object, or of the objects in an array, nested ones after their owner."""
        full = self.at(schema)
        if full.get("type") == "array":
            return self.members(full["items"], prefix)
        found = []
        for name, node in full.get("properties", {}).items():
            found.append(self._member(prefix + name, "", node, name in full.get("required", ()), node))
            brackets = "[]" if self.at(node).get("type") == "array" else ""
            found += self.members(node, f"{prefix}{name}{brackets}.")
        return found

    def parameter(self, node: Node) -> Member:
        full = self.at(node)
        return self._member(full["name"], full["in"], full["schema"], full.get("required", False), full)

    def _member(self, name: str, location: str, schema: Node, required: bool, said: Node) -> Member:
        """`said` has the description and the example: a parameter has them beside its schema."""
        full, said = self.at(schema), self.at(said)
        items = self.at(full.get("items", {}))
        values = full.get("enum") or items.get("enum") or ([full["const"]] if "const" in full else [])
        written = str if location else as_json
        example = example_of(said, full)
        if location and isinstance(example, list):
            example = example[0]
        first, others = split(said.get("description") or full.get("description") or "")
        return Member(
            name=name,
            location=location,
            type=self.type_of(schema),
            required=required,
            deprecated=said.get("deprecated", False),
            addition=said.get("x-petstore-addition", False),
            bounds="; ".join(_bounds(full)),
            values=[written(value) for value in values],
            default=written(full["default"]) if "default" in full else "",
            example="" if example is None else written(example),
            description=first,
            more=others,
        )


def example_of(*nodes: Node) -> Any:
    """The first example of the first node that has one; None without one."""
    for node in nodes:
        if "example" in node:
            return node["example"]
        examples = node.get("examples")
        if isinstance(examples, dict):
            return next(iter(examples.values()))["value"]
        if examples:
            return examples[0]
    items = nodes[-1].get("items")
    return [example_of(items)] if items and example_of(items) is not None else None


def as_json(value: Any) -> str:
    """JSON on one line, as people write it."""
    return json.dumps(value, ensure_ascii=False)


def _kind(schema: Node) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


def _bounds(schema: Node) -> Iterator[str]:
    yield from _between(schema.get("minimum"), schema.get("maximum"), "")
    yield from _between(schema.get("minLength"), schema.get("maxLength"), " characters")
    yield from _between(schema.get("minItems"), schema.get("maxItems"), " entries")
    yield from _between(schema.get("minProperties"), schema.get("maxProperties"), " members")
    pattern = schema.get("pattern", "")
    if len(pattern) < _PATTERN_SHOWN and pattern.startswith("^"):
        yield f"matches {schema['pattern']}"


def _between(low: int | None, high: int | None, unit: str) -> Iterator[str]:
    if low is not None and high is not None:
        yield f"{low:,} to {high:,}{unit}" if low != high else f"{low:,}{unit}"
    elif low is not None:
        yield f"at least {low:,}{unit}"
    elif high is not None:
        yield f"at most {high:,}{unit}"
