"""One process of the service in simulated time: gate, operations, limiter, publisher and flusher are real.

Only what they talk to is simulated. HTTP and JSON around them are left out, and cost nothing here.
"""

from __future__ import annotations

import asyncio
import random

import msgspec

from petstore import config
from petstore.api.deprecation import Deprecation
from petstore.api.pets import PetOperations
from petstore.api.pipeline.cache import PageCache
from petstore.api.pipeline.gate import Gate, Refused
from petstore.api.pipeline.request import Request, read_request
from petstore.api.pipeline.response import Response
from petstore.core.errors import PetstoreError
from petstore.core.keys import Access, Caller
from petstore.core.limits.bans import BanPolicy
from petstore.core.limits.counters import Limiter
from petstore.core.limits.decision import AddressDecision, Decision
from petstore.core.limits.usage import UsageMeter
from petstore.core.versions import NO_VERSIONS
from petstore.http.exchange import Exchange
from petstore.http.heads import Head
from petstore.limiter.address_limiter import AddressLimiter
from petstore.limiter.valkey.client import ValkeyClient
from petstore.limiter.valkey.fallback import FallbackLimiter
from petstore.limiter.valkey.limiter import ValkeyLimiter
from petstore.limiter.valkey.observer import NoObserver
from petstore.limiter.valkey.publisher import ValkeyPublisher
from petstore.limiter.valkey.scripts import Scripts
from petstore.limiter.valkey.url import ValkeyUrl
from petstore.ops.flusher import CounterFlusher
from tools.exchanges import Wire
from verification.simulation.audit import Admissions, Answer, Staleness
from verification.simulation.network import Delays
from verification.simulation.store import SimulatedStore
from verification.simulation.virtual import EPOCH_MS, VirtualClock, VirtualLoop

TIMEOUT_SECONDS = config.load({}).valkey_timeout_ms / 1_000
_REMOVAL_MS = 1_922_400_000_000


class Notes:
    """What the whole fleet's answers came to."""

    def __init__(self) -> None:
        self.admissions = Admissions()
        self.pages = Staleness()
        self.callers = Staleness()
        self.requests = self.lists = self.failed = 0
        self.seconds = 0.0


class _Observer(NoObserver):
    """Tells which decisions were made locally: nothing comes between this call and the gate's answer."""

    def __init__(self) -> None:
        self.was_local = False

    def decided_locally(self) -> None:
        self.was_local = True


class Process:
    """Built as wiring/service.py does it."""

    def __init__(
        self, number: int, loop: VirtualLoop, store: SimulatedStore, policy: BanPolicy, processes: int
    ) -> None:
        self.host = f"process-{number}"
        self._loop = loop
        self._store = store
        self.clock = VirtualClock(loop, random.Random(number).uniform(-0.02, 0.02))
        self._observer = _Observer()
        self.client = ValkeyClient(ValkeyUrl(host=self.host), Scripts(), self._observer, TIMEOUT_SECONDS)
        self.publisher = ValkeyPublisher(self.client)
        self.limiter = ValkeyLimiter(
            self.client,
            store,  # type: ignore[arg-type]  # the service never loads or saves where counters are shared
            self.clock,
            policy,
            FallbackLimiter(self.clock, policy, processes),
        )
        self.meter = UsageMeter()
        self.cache = PageCache()
        self.operations = PetOperations(
            pets=store,  # type: ignore[arg-type]  # lists only
            clock=self.clock,
            deprecation=Deprecation(_REMOVAL_MS, "/v1", "/docs"),
            reference_base="/v1",
            body_timeout_seconds=10.0,
        )
        self.flusher = CounterFlusher(
            limiter=self.limiter,
            meter=self.meter,
            save=store.merge,
            purge=_nothing_to_purge,
            try_write=_nothing_to_try,
            each_round=(),
            clock=self.clock,
        )
        self.gate = self.gate_on(self.limiter)
        self.latest = NO_VERSIONS

    def gate_on(self, limiter: Limiter) -> Gate:
        """A gate before this process's operations."""
        return Gate(
            keys=self._store,  # callers only
            limiter=limiter,
            addresses=AddressLimiter(self.clock, 1_000_000),
            meter=self.meter,
            clock=self.clock,
        )

    async def start(self, rng: random.Random) -> None:
        """Connect, and save counters once a second, each process at its own moment."""
        await self.client.open()
        self._loop.call_later(rng.random(), self._start_flusher)

    def _start_flusher(self) -> None:
        self._saving = asyncio.get_running_loop().create_task(self.flusher.run())

    async def answer(self, place: int, page: int, notes: Notes, delays: Delays) -> None:
        """One list by the key at `place`, from its arrival to its answer."""
        store, arrived = self._store, self._loop.time()
        truth = store.keys[place]
        key_due = (truth.acknowledged, truth.shown)
        page_due = (store.catalogue.acknowledged, store.catalogue.shown)
        request = _request(store.tokens[place], page)
        notes.requests += 1
        caller: Caller | None
        decision: Decision | AddressDecision | None
        try:
            if not self.gate.try_admit(request, Access.READ, False):
                await self.gate.admit(request, Access.READ, False)
            caller, decision = request.caller, request.decision
        except Refused as refused:
            caller, decision = refused.caller, refused.decision
        except PetstoreError:
            notes.failed += 1
            return
        assert caller is not None
        assert isinstance(decision, Decision)
        self.latest = decision.versions
        self._note(caller, decision, notes)
        shown = store.change_of(caller)
        notes.callers.note(shown, key_due, truth.age(shown, arrived))
        truth.shown = max(truth.shown, shown)
        if decision.allowed:
            response = await self._list(request, caller, decision)
            notes.lists += 1
            assert response.body is not None
            seen = msgspec.json.decode(response.body)[0]["id"] - 1
            notes.pages.note(seen, page_due, store.catalogue.age(seen, arrived))
            # Another client can act on it once it has arrived.
            self._loop.call_later(delays.one_way(), _shown, store, seen)
        notes.seconds += self._loop.time() - arrived

    async def _list(self, request: Request, caller: Caller, decision: Decision) -> Response:
        """List animals as ApiApp does."""
        version = decision.versions.catalogue
        found = self.cache.find(request, version)
        if found is not None:
            return found
        answer = self.operations.list_pets(request, caller)
        response = answer if isinstance(answer, Response) else await answer
        self.cache.add(request, version, response)
        return response

    def _note(self, caller: Caller, decision: Decision, notes: Notes) -> None:
        local, self._observer.was_local = self._observer.was_local, False
        at_ms = EPOCH_MS + int(self._loop.time() * 1_000) if local else decision.now_ms
        answer = Answer(at_ms, allowed=decision.allowed, banned=decision.banned, local=local)
        notes.admissions.note(caller.account_id, caller.limits, answer)


def _shown(store: SimulatedStore, number: int) -> None:
    store.catalogue.shown = max(store.catalogue.shown, number)


def _request(token: bytes, page: int) -> Request:
    """A list whose identifier makes it a page of its own."""
    head = Head([(b"authorization", b"Bearer " + token)])
    return read_request(Exchange(Wire(), "GET", b"/v1/pets", b"id=%d" % (page + 1), head, ("192.0.2.1", 1)))


async def _nothing_to_purge(now_ms: int) -> None: ...


async def _nothing_to_try() -> None: ...
