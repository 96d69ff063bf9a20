"""FakePetstore: the service in memory, for tests of programs that use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import httpx2

from petstore_client import AsyncPetstore, Order, Pet, PetStatus, Petstore
from petstore_client.models import read_order, read_pet
from petstore_client.testing.bodies import read
from petstore_client.testing.clock import START, Clock, SteeredRuntime
from petstore_client.testing.messages import NoAnswer, Request, encode
from petstore_client.testing.server import served
from petstore_client.testing.service import FAILURES, Failure, Service
from petstore_client.testing.windows import PLANS, Access, Account, Key, PlanName


class _Transport(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Carries requests of both clients to a service."""

    def __init__(self, service: Service, clock: Clock) -> None:
        self._service, self._clock = service, clock

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._answer(request, request.read())

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return self._answer(request, await request.aread())

    def _answer(self, request: httpx2.Request, content: bytes) -> httpx2.Response:
        target, headers = request.url.raw_path.decode("ascii"), request.headers.multi_items()
        try:
            answer = self._service.answer(request.method, target, headers, content)
        except NoAnswer as lost:
            if not lost.slow:
                raise httpx2.ReadError(str(lost), request=request) from None
            self._clock.advance(request.extensions.get("timeout", {}).get("read") or 0)
            raise httpx2.ReadTimeout(str(lost), request=request) from None
        return httpx2.Response(answer.status, headers=answer.headers, content=answer.content)


class FakePetstore:
    """The pet store service in memory, with its rules, for tests without a service.

    It is reached by `client()` and `async_client()`, whose waits move `clock` on instead of sleeping; by any
    client with `transport`; and over HTTP by `serve()`. The same calls always give the same answers. There
    are no bans, webhooks and pages outside `/v1`; a request for a webhook raises NotImplementedError (over
    HTTP status 501). `GET /v1/events` never waits, and has events of animals, categories and orders alone.

    `key` is one of the level manage. `requests` has what was sent, the oldest first. Without a plan the
    limits are Enterprise's, a million a minute.
    """

    base_url = "https://petstore.test"

    def __init__(
        self,
        *,
        account: str = "shop",
        plan: PlanName = "enterprise",
        per_minute: int = 1_000_000,
        per_day: int = 10_000_000,
        now: datetime = START,
    ) -> None:
        """`per_minute` and `per_day` are limits of the plan enterprise; the others have their own."""
        self._plan: PlanName = plan
        self._limits = PLANS.get(plan, (per_minute, per_day))
        self.clock = Clock(now)
        self._service = Service(self.clock)
        self._runtime = SteeredRuntime(self.clock)
        self._accounts: dict[str, Account] = {}
        self.requests: list[Request] = self._service.requests
        self.transport = _Transport(self._service, self.clock)
        self._account = account
        self.key = self.add_key()

    def client(self, key: str | None = None) -> Petstore:
        """A client, with the fake's own key unless one is given. Nothing of it sleeps."""
        return Petstore(self.base_url, key or self.key, transport=self.transport, runtime=self._runtime)

    def async_client(self, key: str | None = None) -> AsyncPetstore:
        """A client like `client`, for asyncio."""
        return AsyncPetstore(self.base_url, key or self.key, transport=self.transport, runtime=self._runtime)

    @contextmanager
    def serve(self) -> Iterator[str]:
        """The base address of an HTTP server on 127.0.0.1 for the length of the block.

        Meanwhile the clock also goes on by itself, since other programs really wait.
        """
        self.clock.run()
        try:
            with served(self._service.answer) as base_url:
                yield base_url
        finally:
            self.clock.stop()

    def fail_next(self, failure: str, *, times: int = 1, operation: str | None = None) -> None:
        """Let the next `times` requests fail, of all operations or of one, such as `createPet`.

        `failure` is a code of the service, such as `unavailable`; `lost`, when the connection ends without an
        answer after the change; or `slow`, when the answer does not come within the client's time limit. Of
        the codes `outcome_unknown` changes something, the others nothing. Raises ValueError.
        """
        if failure not in FAILURES:
            raise ValueError(f"{failure!r} is none of {', '.join(sorted(FAILURES))}.")
        self._service.failures.append(Failure(failure, times, operation))

    def add_pet(self, name: str = "Rex", category_id: int = 1, status: PetStatus = "available") -> Pet:
        """Put an animal in the store; raises ValueError."""
        body = encode({"name": name, "categoryId": category_id, "status": status})
        return read_pet(self._service.store.add_pet(read(body, "createPet")))

    def name_category(self, category_id: int, name: str) -> None:
        """Give a category its name, as staff do."""
        self._service.store.name_category(category_id, name)

    def add_key(self, access: Access = "manage", *, account: str | None = None) -> str:
        """A key of a level. An account that is not there yet is made, with limits of its own."""
        account = account or self._account
        if account not in self._accounts:
            number = len(self._accounts) + 1
            self._accounts[account] = Account(number, account, self._plan, self._limits)
        key = f"pets_test_{len(self._service.keys) + 1:038d}"
        self._service.keys[key] = Key(self._accounts[account], access)
        return key

    @property
    def pets(self) -> list[Pet]:
        """All animals as they are now, without a request."""
        return [read_pet(each) for each in self._service.store.pets.values()]

    @property
    def orders(self) -> list[Order]:
        """All orders as they are now, without a request."""
        return [read_order(each.shown()) for each in self._service.store.orders.values()]
