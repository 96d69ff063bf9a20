"""YAML that people like to read: as the parts of the contract are written by hand.

Short values stay on one line, texts of several lines are literal blocks, long ones are folded. An empty
line comes before each section, path, further method of a path, and kind of component.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_WIDTH = 110
_ON_ONE_LINE = 72  # characters of an object or a list, at most
_KINDS = "securitySchemes|parameters|headers|responses|schemas|pathItems"
_SECTIONS = re.compile(rf"^(?=[a-z]|  /|  (?:{_KINDS}):$|    (?:post|patch|delete):$)", re.MULTILINE)


def as_yaml(document: dict[str, Any], remark: str) -> str:
    """The document; `remark` is the comment above it."""
    text = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return f"# {remark}\n" + _SECTIONS.sub("\n", text)


class _Dumper(yaml.SafeDumper):
    """Indents lists, and repeats what is there twice instead of naming it."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text.rstrip("\n"):
        style = "|"
    elif len(text) > _ON_ONE_LINE and " " in text:
        style = ">"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _object(dumper: _Dumper, node: dict[str, Any]) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", node, flow_style=_is_short(node))


def _list(dumper: _Dumper, node: list[Any]) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", node, flow_style=_is_short(node))


def _is_short(node: Any) -> bool:
    return len(str(node)) <= _ON_ONE_LINE


_Dumper.add_representer(str, _text)
_Dumper.add_representer(dict, _object)
_Dumper.add_representer(list, _list)
