"""Steps of the protocol, each left out on purpose: what then goes wrong shows that the simulation can see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from unittest.mock import patch

from petstore.api.pipeline.cache import PageCache
from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Response
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import Limiter, LimiterState, OnDecision
from petstore.core.limits.decision import Decision
from petstore.core.versions import NoVersions, Version
from petstore.limiter.memory import MemoryLimiter
from petstore.limiter.valkey import lease
from verification.simulation.process import Process
from verification.simulation.store import SimulatedStore
from verification.simulation.valkey import SimulatedValkey


@dataclass
class Parts:
    """What a run is made of."""

    fleet: list[Process]
    store: SimulatedStore
    valkey: SimulatedValkey
    policy: BanPolicy


class _LateCache(PageCache):
    """Caches a page under the version that was seen last, not under the one from before the read."""

    def __init__(self, process: Process) -> None:
        super().__init__()
        self._process = process

    def add(self, request: Request, version: Version | None, response: Response) -> None:
        super().add(request, self._process.latest.catalogue, response)


class _AnyVersion:
    """Equals every version that is known."""

    def __eq__(self, other: object) -> bool:
        return other is not None

    __hash__ = None  # type: ignore[assignment]


class _LateLimiter:
    """Lets the gate cache a caller under the decision's version, not under the one from before the read."""

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter
        self._versions: dict[Caller, Version | None] = {}

    async def take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        version = None if cached_version is None else self._versions[caller]
        decision = await self._limiter.take(caller, version)
        if decision is not None and version is None:
            self._versions[caller] = decision.versions.keyring
        return decision

    def try_take(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        return None

    async def peek(self, caller: Caller, cached_version: Version | None = None) -> Decision | None:
        return await self._limiter.peek(caller)

    def take_later(self, caller: Caller, cached_version: Version | None, callback: OnDecision) -> bool:
        return False

    def keyring_version(self) -> Version | None:
        return _AnyVersion()  # type: ignore[return-value]

    def drain(self) -> LimiterState:
        return self._limiter.drain()

    def saved(self) -> None:
        self._limiter.saved()


def _valkey(flag: str, value: bool) -> Callable[[Parts], None]:
    """An omission by a flag of SimulatedValkey."""
    return lambda parts: setattr(parts.valkey, flag, value)


_no_mark = _valkey("marks", False)


def _answers_first(parts: Parts) -> None:
    """It would do no harm with the mark: while a writer is on its way everybody reads the store."""
    _no_mark(parts)
    parts.store.late_answer = False


def _late_pages(parts: Parts) -> None:
    for process in parts.fleet:
        process.cache = _LateCache(process)


def _late_callers(parts: Parts) -> None:
    for process in parts.fleet:
        process.gate = process.gate_on(_LateLimiter(process.limiter))


def _own_counters(parts: Parts) -> None:
    for process in parts.fleet:
        process.gate = process.gate_on(MemoryLimiter(process.clock, parts.policy, NoVersions()))


def _elsewhere(_: Parts) -> None:
    """The lease is a number of a module, in `left_out`; the share is divided when the fleet is built."""


UNDIVIDED = "divided share"
OMISSIONS: dict[str, Callable[[Parts], None]] = {
    "mark": _no_mark,
    "bump": _valkey("moves", False),
    "mark, and answer after bump": _answers_first,
    "version before read (pages)": _late_pages,
    "version before read (callers)": _late_callers,
    "lease": _elsewhere,
    "shared counters": _own_counters,
    "one round trip": _valkey("torn", True),
    "recovery records": lambda parts: setattr(parts.store, "loads", False),
    "epoch": _valkey("doubts", False),
    UNDIVIDED: _elsewhere,
}


@contextmanager
def left_out(step: str, parts: Parts) -> Iterator[None]:
    """Leave this step out of everything in the block; "" for none."""
    if step:
        OMISSIONS[step](parts)
    with patch.object(lease, "LEASE_SECONDS", 1e6) if step == "lease" else nullcontext():
        yield
