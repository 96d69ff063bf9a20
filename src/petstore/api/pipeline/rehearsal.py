"""The header Petstore-Rehearse: in staging it brings about any documented answer; elsewhere it is refused.

It is read after the gate, so a rehearsal costs one. It changes no counters, and no rows
except where it carries out an operation.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time

import msgspec
from msgspec.structs import replace

from petstore.api.pipeline.body import PATCH_TYPES
from petstore.api.pipeline.gate import Gate, limit_error
from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Response
from petstore.api.pipeline.routing import Operation, Router
from petstore.core.clock import Clock
from petstore.core.durations import SECOND_MS
from petstore.core.errors import BY_CODE, InvalidHeader, PetstoreError, Unavailable, UnsupportedMediaType
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy, BanState
from petstore.core.limits.decision import AddressDecision, Decision
from petstore.core.limits.quota import ban_decision
from petstore.core.limits.windows import ceil_seconds

REHEARSE = b"petstore-rehearse"
SLOW_MAX_MS = 30_000
SLOW_AT_ONCE = 100
_POLL_SECONDS = 0.2
_SLOW = re.compile(r"slow=([0-9]{1,5})", re.ASCII)
_DATE = re.compile(r"date=([0-9]{4}-[0-9]{2}-[0-9]{2})", re.ASCII)
# Those that a real request gets before its account is known: their limits are those of the client's address.
_BEFORE_THE_GATE = frozenset(
    {"invalid_request", "uri_too_long", "headers_too_large", "unauthorized", "account_suspended"}
)

Rehearse = Callable[[Request, Operation], Awaitable[Response]]
# The messages of the documented errors, by operation and code.
Documented = Callable[[], Mapping[str, Mapping[str, str]]]


class Rehearsed(Exception):
    """An error that was asked for: nothing is wrong with the service. `decision` is what its headers say of
    limits; None: the address's."""

    def __init__(self, error: PetstoreError, name: str, decision: Decision | AddressDecision | None) -> None:
        super().__init__(name)
        self.error, self.decision = error, decision
        self.header = (b"petstore-rehearsed", name.encode("ascii"))


class Unanswered(Exception):
    """The connection ends without an answer."""


def refuse(there: str) -> Rehearse:
    """Refuse the header in a service that is not staging; `there` is staging's base address, or empty."""
    where = f": {there}" if there else ""

    def refuse_header(request: Request, operation: Operation) -> Awaitable[Response]:
        raise InvalidHeader(f"Petstore-Rehearse works in staging alone{where}. Send none here.")

    return refuse_header


class Rehearsal(msgspec.Struct):
    """Implements Rehearse for staging. `removed`: all operations as they are from the removal of getPet on,
    at `removal_at_ms`; `has_ended`: whether the service stops."""

    gate: Gate
    clock: Clock
    documented: Documented
    removed: Router
    removal_at_ms: int
    has_ended: Callable[[], bool]
    _slow: int = 0

    def __call__(self, request: Request, operation: Operation) -> Awaitable[Response]:
        """Raises InvalidHeader for a value that the operation does not take."""
        if REHEARSE in request.head.repeated:
            raise InvalidHeader("Petstore-Rehearse: send one.")
        text = request.headers[REHEARSE].decode("latin-1")
        codes = {"method_not_allowed", *self.documented()[operation.name]}
        if text in codes:
            return self._fail(request, operation, text)
        if text == "lost":
            return _lose(request, operation)
        if (slow := _SLOW.fullmatch(text)) and int(slow[1]) <= SLOW_MAX_MS:
            return self._wait(request, operation, int(slow[1]))
        if (day := _read_day(text)) is not None:
            return _carry_out(self._on(day, request, operation), request)
        raise InvalidHeader(
            f"Petstore-Rehearse: this operation takes {', '.join(sorted(codes))}, lost, slow=MS up to"
            f" {SLOW_MAX_MS}, date=YYYY-MM-DD."
        )

    async def _fail(self, request: Request, operation: Operation, code: str) -> Response:
        decision = request.decision
        assert isinstance(decision, Decision)
        if code == "outcome_unknown":
            await _carry_out(operation, request)
        if code in ("gone", "method_not_allowed"):
            error = await self._found(request, operation, code)
        elif code in ("rate_limited", "key_banned"):
            decision = _used_up(decision) if code == "rate_limited" else _banned(request.caller, decision)
            error = limit_error(decision)
        else:
            error = BY_CODE[code](self.documented()[operation.name][code])
            if isinstance(error, UnsupportedMediaType) and operation.method == "PATCH":
                error.accept_patch = PATCH_TYPES
        raise Rehearsed(error, code, None if code in _BEFORE_THE_GATE else decision)

    async def _found(self, request: Request, operation: Operation, code: str) -> PetstoreError:
        """The error of getPet after its removal, or of a method that the path does not take."""
        route = self.removed.find(request.path)
        try:
            await _carry_out(
                route.otherwise if code != "gone" else route.operations[operation.method], request
            )
        except PetstoreError as error:
            return error
        raise AssertionError(code)

    def _on(self, day: date, request: Request, operation: Operation) -> Operation:
        """The operation as it is on a day: only the removal of getPet is a matter of days."""
        now = datetime.fromtimestamp(self.clock.now_ms() / SECOND_MS, UTC)
        if day < now.date():
            raise InvalidHeader(f"Petstore-Rehearse: {day} is past; name today or a later day.")
        midnight = datetime.combine(day, time(), UTC)
        if midnight.timestamp() * SECOND_MS < self.removal_at_ms:
            return operation
        return self.removed.find(request.path).operations[operation.method]

    async def _wait(self, request: Request, operation: Operation, milliseconds: int) -> Response:
        """The answer after `milliseconds`; nothing happens where the client goes away before."""
        if self._slow >= SLOW_AT_ONCE:
            full = Unavailable(f"{SLOW_AT_ONCE} slow answers are waited for; try again when one is sent.")
            raise Rehearsed(full, "slow", request.decision)
        monotonic, began = self.clock.monotonic, self.clock.monotonic()
        left = ends = milliseconds / SECOND_MS
        gone = asyncio.ensure_future(request.exchange.wait_for_disconnect())
        self._slow += 1
        try:
            while left > 0 and not self.has_ended():
                if (await asyncio.wait([gone], timeout=min(left, _POLL_SECONDS)))[0]:
                    raise Unanswered
                request.waited = monotonic() - began
                left = ends - request.waited
        finally:
            self._slow -= 1
            gone.cancel()
        await self.gate.admit_again(request)  # the answer is of this moment
        return await _carry_out(operation, request)


async def _carry_out(operation: Operation, request: Request) -> Response:
    assert request.caller is not None
    answer = operation.handler(request, request.caller)
    return answer if isinstance(answer, Response) else await answer


async def _lose(request: Request, operation: Operation) -> Response:
    with suppress(PetstoreError):
        await _carry_out(operation, request)
    raise Unanswered


def _read_day(text: str) -> date | None:
    found = _DATE.fullmatch(text)
    with suppress(ValueError):
        return date.fromisoformat(found[1]) if found else None
    return None


def _used_up(decision: Decision) -> Decision:
    """The refusal by the window that binds, if that is used up, else by the first one."""
    index = decision.binding_index if decision.remaining[decision.binding_index] == 0 else 0
    remaining = tuple(0 if each == index else left for each, left in enumerate(decision.remaining))
    wait = max(1, ceil_seconds(decision.reset_at[index] * SECOND_MS - decision.now_ms))
    return replace(
        decision, allowed=False, remaining=remaining, binding_index=index, retry_after_seconds=wait
    )


def _banned(caller: Caller | None, decision: Decision) -> Decision:
    """The refusal at the beginning of a first ban."""
    assert caller is not None
    now_ms, duration_ms = decision.now_ms, BanPolicy().durations_ms[0]
    ban = BanState(banned_until_ms=ceil_seconds(now_ms + duration_ms) * SECOND_MS)
    return ban_decision(caller, ban, now_ms, decision.versions)
