"""Requests that share a call of take.lua: those that arrive in one turn of the event loop.

They cost no task and no future each, and the requests of one key are asked for together. Others, such as
requests of an outdated Caller or in an outage, are left to ValkeyLimiter.take, which asks anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from petstore.core.clock import Clock
from petstore.core.keys import Caller
from petstore.core.limits.counters import OnDecision
from petstore.core.limits.decision import Decision
from petstore.limiter.valkey.calls import TOO_MANY, Calls
from petstore.limiter.valkey.client import ValkeyClient
from petstore.limiter.valkey.lease import Token

# Makes the Decisions of a caller's requests, in their order, from a reply; none if the reply has none.
Read = Callable[[Caller, list[int], Token, int], list[Decision]]

# More would hold up Valkey for other processes.
_KEYS_MAX = 64


class _KeyRequests(msgspec.Struct, eq=False, gc=False):
    """Requests of one key, and who waits for them."""

    caller: Caller
    version: Token
    callbacks: list[OnDecision]


# Requests by the id of their key; those that are asked for alone, by any number.
_Batch = dict[int, _KeyRequests]


class BatchedTakes:
    """What is asked in this turn of the event loop."""

    def __init__(self, client: ValkeyClient, calls: Calls, clock: Clock, read: Read) -> None:
        self._client = client
        self._calls = calls
        self._monotonic = clock.monotonic
        self._read = read
        self._open: _Batch = {}

    def join(self, caller: Caller, version: Token, callback: OnDecision) -> bool:
        """Wait with others of this batch, if there are some of this very Caller and version."""
        group = self._open.get(caller.key_id)
        if group is None or group.caller is not caller or group.version is not version:
            return False
        group.callbacks.append(callback)
        return True

    def begin(self, caller: Caller, version: Token, callback: OnDecision) -> bool:
        """Ask for this request, and for those that join it. False if the key is in the batch already."""
        batch = self._open
        if caller.key_id in batch:
            return False
        if not batch or len(batch) == _KEYS_MAX:
            batch = self._open = {}
            self._send(batch)
        batch[caller.key_id] = _KeyRequests(caller, version, [callback])
        return True

    def _send(self, batch: _Batch) -> None:
        self._client.send(partial(self._encode, batch), partial(self._on_reply, batch, self._monotonic()))

    def _close(self, batch: _Batch) -> None:
        """Nobody joins it any more."""
        if self._open is batch:
            self._open = {}

    def _encode(self, batch: _Batch) -> bytes:
        self._close(batch)
        return self._calls.take_all(
            [
                (group.caller, (group.version.number, group.version.lease.ends_ms), len(group.callbacks))
                for group in batch.values()
            ]
        )

    def _on_reply(self, batch: _Batch, began_seconds: float, replies: Any) -> None:
        if isinstance(replies, list):
            self._client.observer.asked(self._monotonic() - began_seconds)
            for group, reply in zip(batch.values(), replies, strict=True):
                self._answer(group, reply)
        else:
            self._close(batch)  # the connection may have been lost before it was sent
            for group in batch.values():
                _call_back(group, [None] * len(group.callbacks))

    def _answer(self, group: _KeyRequests, reply: list[int]) -> None:
        caller, version, callbacks = group.caller, group.version, group.callbacks
        if reply[0] == TOO_MANY:  # nobody knows which of them, so each is asked for alone
            alone = [_KeyRequests(caller, version, [one]) for one in callbacks]
            for start in range(0, len(alone), _KEYS_MAX):
                self._send(dict(enumerate(alone[start : start + _KEYS_MAX])))
        else:
            _call_back(group, self._read(caller, reply, version, len(callbacks)) or [None] * len(callbacks))


def _call_back(group: _KeyRequests, decisions: Sequence[Decision | None]) -> None:
    for callback, decision in zip(group.callbacks, decisions, strict=True):
        try:
            callback(group.caller, decision)
        except Exception as error:  # the others have their answers
            loop = asyncio.get_running_loop()
            loop.call_exception_handler({"message": "an answer failed", "exception": error})
