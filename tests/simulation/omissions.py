"""Steps of the protocol, each left out on purpose: what then goes wrong shows that the simulation can see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from unittest.mock import patch

from petstore.api.pipeline.cache import PageCache
from petstore.api.pipeline.gate import Gate
from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Response
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.decision import Decision
from petstore.core.versions import NoVersions, Version, Versions
from petstore.limiter.memory import MemoryLimiter
from petstore.limiter.valkey import limiter as limiter_module
from petstore.limiter.valkey.fallback import FallbackLimiter
from tests.simulation.process import Process
from tests.simulation.store import SimulatedStore
from tests.simulation.valkey import SimulatedValkey


class _CachedLate(PageCache):
    """Caches a page under the version that was seen last, not under the one from before the read."""

    def __init__(self, seen: Callable[[], Versions]) -> None:
        super().__init__()
        self._seen = seen

    def add(self, request: Request, version: Version | None, response: Response) -> None:
        super().add(request, self._seen().catalogue, response)


class _LateGate(Gate):
    """Caches a caller under the decision's version, without looking at the one from before the read."""

    async def _take_afresh(
        self, request: Request, token: bytes, key_digest: bytes
    ) -> tuple[Caller, Decision]:
        caller, decision = await super()._take_afresh(request, token, key_digest)
        if decision.versions.keyring is not None:
            self._cache(decision.versions.keyring, key_digest, caller)
        return caller, decision


Fleet = list[Process]
Omission = Callable[[Fleet, SimulatedStore, SimulatedValkey, BanPolicy], None]


def _no_mark(_: Fleet, __: SimulatedStore, valkey: SimulatedValkey, ___: BanPolicy) -> None:
    valkey.marks = False


def _no_bump(_: Fleet, __: SimulatedStore, valkey: SimulatedValkey, ___: BanPolicy) -> None:
    valkey.moves = False


def _answers_first(fleet: Fleet, store: SimulatedStore, valkey: SimulatedValkey, policy: BanPolicy) -> None:
    """With the mark it would do no harm: while a writer is on its way everybody reads the store."""
    _no_mark(fleet, store, valkey, policy)
    store.late_answer = False


def _late_pages(fleet: Fleet, _: SimulatedStore, __: SimulatedValkey, ___: BanPolicy) -> None:
    for process in fleet:
        limiter = process.limiter
        process.cache = _CachedLate(partial(getattr, limiter, "_versions"))


def _late_callers(fleet: Fleet, _: SimulatedStore, __: SimulatedValkey, ___: BanPolicy) -> None:
    for process in fleet:
        process.gate = process.gate_on(process.limiter, _LateGate)


def _own_counters(fleet: Fleet, _: SimulatedStore, __: SimulatedValkey, policy: BanPolicy) -> None:
    for process in fleet:
        process.gate = process.gate_on(MemoryLimiter(process.clock, policy, NoVersions()))


def _torn(_: Fleet, __: SimulatedStore, valkey: SimulatedValkey, ___: BanPolicy) -> None:
    valkey.torn = True


def _no_seeds(_: Fleet, store: SimulatedStore, __: SimulatedValkey, ___: BanPolicy) -> None:
    store.loads = False


def _no_epoch(_: Fleet, __: SimulatedStore, valkey: SimulatedValkey, ___: BanPolicy) -> None:
    valkey.doubts = False


def _undivided(fleet: Fleet, _: SimulatedStore, __: SimulatedValkey, policy: BanPolicy) -> None:
    for process in fleet:
        process.limiter._fallback = FallbackLimiter(process.clock, policy, 1)


def _no_lease(_: Fleet, __: SimulatedStore, ___: SimulatedValkey, ____: BanPolicy) -> None:
    """In `left_out`: it is one number of a module."""


OMISSIONS: dict[str, Omission] = {
    "mark": _no_mark,
    "bump": _no_bump,
    "mark, and answer after bump": _answers_first,
    "version before read (pages)": _late_pages,
    "version before read (callers)": _late_callers,
    "lease": _no_lease,
    "shared counters": _own_counters,
    "one round trip": _torn,
    "recovery records": _no_seeds,
    "epoch": _no_epoch,
    "divided share": _undivided,
}


@contextmanager
def left_out(
    step: str, fleet: Fleet, store: SimulatedStore, valkey: SimulatedValkey, policy: BanPolicy
) -> Iterator[None]:
    """Leave this step out of everything in the block; "" for none."""
    if step:
        OMISSIONS[step](fleet, store, valkey, policy)
    with patch.object(limiter_module, "LEASE_SECONDS", 1e6) if step == "lease" else nullcontext():
        yield
