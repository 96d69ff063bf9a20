"""Versions that tell whether something read earlier is still true: one of the animals, one of the keys."""

from __future__ import annotations

from typing import Protocol

import msgspec


class Versions(msgspec.Struct, frozen=True, gc=False):
    """`catalogue` changes with every change of an animal, `keyring` with every one of an account or key."""

    catalogue: int
    keyring: int


class VersionSource(Protocol):
    """Asked once by every request that wants to use something kept."""

    def current(self) -> Versions:
        """As of a moment after the request was received. Must be called on the event loop."""
        ...
