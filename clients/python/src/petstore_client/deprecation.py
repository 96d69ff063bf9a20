"""The warning about an operation that is going to be removed."""

from __future__ import annotations

import warnings

from petstore_client.answers import Answer
from petstore_client.errors import shown
from petstore_client.runtime import Runtime


class OperationDeprecated(DeprecationWarning):
    """The operation will be removed at its sunset date (RFC 8594)."""


def warn_once(operation: str, answer: Answer, runtime: Runtime, stacklevel: int) -> None:
    """Warn when the answer says so (RFC 9745), once in a process for each operation."""
    if "deprecation" not in answer.headers or operation in runtime.warned:
        return
    runtime.warned.add(operation)
    sunset = answer.headers.get("sunset")
    when = f"will be removed on {shown(sunset)}" if sunset else "is deprecated"
    instead = " Use pets.get(id), which takes the same argument." if operation == "getPet" else ""
    warnings.warn(f"{operation} {when}.{instead}", OperationDeprecated, stacklevel=stacklevel + 1)
