"""Reads members of the contract's JSON: each raises ValueError where it is another one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

_T = TypeVar("_T")


def member(document: Any, name: str, kind: type[_T]) -> _T:
    """A member of a JSON object; raises ValueError when it is missing or of another type."""
    value = document.get(name) if isinstance(document, dict) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{name} is missing or not {kind.__name__}")
    return value


def optional_member(document: Any, name: str, kind: type[_T]) -> _T | None:
    """A member that may be null or absent."""
    return None if document.get(name) is None else member(document, name, kind)


def moment(document: Any, name: str) -> datetime:
    """A member that is a date-time (RFC 3339)."""
    return datetime.fromisoformat(member(document, name, str))


def optional_moment(document: Any, name: str) -> datetime | None:
    """A date-time that may be null or absent."""
    return None if document.get(name) is None else moment(document, name)


def read_array(read: Callable[[Any], _T]) -> Callable[[Any], tuple[_T, ...]]:
    """Reads a JSON array of such members."""

    def read_all(document: Any) -> tuple[_T, ...]:
        if not isinstance(document, list):
            raise ValueError("not an array")
        return tuple(read(each) for each in document)

    return read_all
