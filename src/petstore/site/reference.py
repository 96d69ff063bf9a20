"""What the reference page shows of the OpenAPI document."""

from __future__ import annotations

from typing import Any

import msgspec

_METHODS = ("get", "post", "put", "patch", "delete")


class Shown(msgspec.Struct, frozen=True):
    """An operation as the page shows it."""

    name: str
    method: str
    path: str
    summary: str


def operations(document: dict[str, Any]) -> list[Shown]:
    """The operations in the order of the document."""
    return [
        Shown(operation["operationId"], method.upper(), path, operation["summary"])
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in _METHODS
    ]
