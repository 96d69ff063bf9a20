"""The OpenAPI document: joined from the YAML files beside this one, with this installation's addresses."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
import yaml

from petstore.api.openapi.join import join, say_levels_and_codes
from petstore.api.openapi.notation import as_yaml
from petstore.core import packaged

# The version of the interface (specification, Versioning), not of the program.
INTERFACE_VERSION = "1.0.0"

_REMARK = "The contract of the Pet Store Service. The same in JSON: /openapi.json. To read: /docs/reference."
_ORDER = ("openapi", "info", "servers", "externalDocs", "security", "tags", "paths", "webhooks", "components")
# Paths are served in this order: who tries them one after the other finds what is removed at the end.
_PARTS = (
    *("pets", "pet", "categories", "orders", "order", "events", "webhooks", "deliveries", "webhook", "usage"),
    *("rehearsal", "shared", "errors"),
)


class OpenApiDocument:
    """The contract as JSON and as YAML; each is rendered on first use.

    `documentation` is the absolute address of the pages; empty where it is not known.
    """

    def __init__(self, servers: list[dict[str, str]], documentation: str = "") -> None:
        self._servers = servers
        self._documentation = documentation
        self._json: bytes | None = None
        self._yaml: bytes | None = None

    def read(self) -> dict[str, Any]:
        """The document as data, without the sentences that say what its other members say."""
        service = _part("service")
        service["servers"] = self._servers
        if self._documentation:
            service["info"]["contact"]["url"] = self._documentation
            service["externalDocs"] = {"description": "Guide, errors, reference.", "url": self._documentation}
        joined = join(service, [_part(name) for name in _PARTS])
        return {name: joined[name] for name in _ORDER if name in joined}

    def _published(self) -> dict[str, Any]:
        document = self.read()
        say_levels_and_codes(document)
        return document

    def as_json(self) -> bytes:
        if self._json is None:
            self._json = msgspec.json.format(msgspec.json.encode(self._published()), indent=2)
        return self._json

    def as_yaml(self) -> bytes:
        if self._yaml is None:
            self._yaml = as_yaml(self._published(), _REMARK).encode()
        return self._yaml


@cache
def documented_messages() -> dict[str, dict[str, str]]:
    """The first example of each documented error, by operation and code. The first call takes about 0.2 s."""
    document = OpenApiDocument([]).read()
    responses = document["components"]["responses"]
    found: dict[str, dict[str, str]] = {}
    for operation in (each for item in document["paths"].values() for each in item.values()):
        messages = found.setdefault(operation["operationId"], {})
        for answer in operation["responses"].values():
            if "$ref" in answer:
                [content] = responses[answer["$ref"].rpartition("/")[2]]["content"].values()
                for example in content["examples"].values():
                    messages.setdefault(example["value"]["code"], example["value"]["message"])
    return found


def _part(name: str) -> dict[str, Any]:
    text = packaged.files("petstore.api.openapi").joinpath(f"{name}.yaml").read_text()
    part: dict[str, Any] = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return part
