"""Idempotency-Key: within 24 hours a client's key creates one resource, however often it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from petstore.core.digests import digest
from petstore.core.durations import DAY_MS
from petstore.core.errors import IdempotencyKeyInUse, IdempotencyKeyReused

KEPT_MS = DAY_MS
_T = TypeVar("_T")


class IdempotencyKey(msgspec.Struct, frozen=True):
    """A client's `Idempotency-Key`, which is the account's own name for one creation."""

    account_id: int
    text: str


class Creation(msgspec.Struct, frozen=True):
    """The creation of a `resource`, such as `order`, under an Idempotency-Key.

    Requests with equal fingerprints are the same request; see `fingerprint`.
    """

    idempotency_key: IdempotencyKey
    resource: str
    fingerprint: bytes

    def check_replay(self, resource: str, fingerprint: bytes) -> None:
        """Raise IdempotencyKeyReused unless the key created the same before."""
        if (resource, fingerprint) != (self.resource, self.fingerprint):
            raise IdempotencyKeyReused(
                "This Idempotency-Key was used within the last 24 hours for another request;"
                " use a new key for a new request."
            )


def fingerprint(new: msgspec.Struct) -> bytes:
    """The SHA-256 of a validated body: bodies with other white space or order of members have the same.

    Null members are left out: for a release that adds an optional member a repeated request is the same one.
    """
    members = msgspec.to_builtins(new).items()
    return digest(msgspec.json.encode({name: value for name, value in members if value is not None}))


class InFlight:
    """The creations that this process is carrying out. Between processes the database's lock decides."""

    def __init__(self) -> None:
        self._waited_for: set[IdempotencyKey] = set()
        self._abandoned: dict[IdempotencyKey, asyncio.Future[Any]] = {}

    async def carry_out(self, idempotency_key: IdempotencyKey, start: Callable[[], asyncio.Future[_T]]) -> _T:
        """The result of the write that `start` begins. Raises IdempotencyKeyInUse, and what the write raises.

        A client that goes away leaves its write running; its retry waits for that before it begins another.
        """
        if idempotency_key in self._waited_for:
            raise IdempotencyKeyInUse
        self._waited_for.add(idempotency_key)
        try:
            if idempotency_key in self._abandoned:
                await asyncio.wait([self._abandoned[idempotency_key]])
            write = start()
            try:
                return await asyncio.shield(write)
            except asyncio.CancelledError:
                if not write.done():
                    self._abandoned[idempotency_key] = write
                    write.add_done_callback(lambda _: self._abandoned.pop(idempotency_key, None))
                raise
        finally:
            self._waited_for.discard(idempotency_key)
