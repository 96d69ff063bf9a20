"""The client for asyncio. client.py is the same for threads; what both do is in policy.py and calls.py."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar

import httpx2

from petstore_client import calls
from petstore_client.aio_follow import AsyncEvents
from petstore_client.aio_webhook_methods import AsyncWebhooks
from petstore_client.answers import Answer, Fault, Page
from petstore_client.calls import Call
from petstore_client.connection import LARGEST_ANSWER, Connection, answer_of, watch_async
from petstore_client.limits import Limits
from petstore_client.models import Category, Order, OrderScope, OrderStatus, Pet, PetOrder, PetStatus, Usage
from petstore_client.policy import Exchange, Options, Outcome, Send, Steps
from petstore_client.pool import AsyncPool
from petstore_client.runtime import PROCESS, Runtime

T = TypeVar("T")


class AsyncPetstore:
    """A client of the pet store service. All tasks may share one, also those of several event loops.

    `base_address` is the service's, with or without `/v1`; plain http is for this machine unless
    `allow_http`. A call fails with its `tries`-th fault, and ends within `seconds` in all: waiting for the
    limits, every try and the whole answer; with `seconds=0` it does not wait, and its one try has `timeout`
    seconds. `timeout` seconds of silence end a try. Tests give `transport` and `runtime`. Raises
    ConfigurationError.
    """

    def __init__(  # noqa: PLR0913  (each is a choice of the caller's)
        self,
        base_address: str,
        key: str,
        *,
        tries: int = Options.tries,
        seconds: float = Options.seconds,
        timeout: float = Options.timeout,
        allow_http: bool = False,
        transport: httpx2.AsyncBaseTransport | None = None,
        runtime: Runtime = PROCESS,
    ) -> None:
        options = Options(tries, seconds, timeout)
        connection = Connection(base_address, key, options, runtime, allow_http=allow_http)
        self._bind(connection, AsyncPool(connection.address, transport))

    def _bind(self, connection: Connection, pool: AsyncPool) -> None:
        self._connection = connection
        self._pool = pool
        self.pets = AsyncPets(self)
        self.orders = AsyncOrders(self)
        self.categories = AsyncCategories(self)
        self.events = AsyncEvents(self._run, pool, connection.runtime.monotonic)
        self.webhooks = AsyncWebhooks(self._run, self._walk)

    @property
    def limits(self) -> Limits | None:
        """What the last answer to this key said is left; None before the first answer."""
        return self._connection.limiter.limits

    async def usage(self) -> Usage:
        """The account's plan, what it has used, and its last 90 days. Costs one call."""
        return await self._run(calls.get_usage())

    def with_options(
        self, *, tries: int | None = None, seconds: float | None = None, timeout: float | None = None
    ) -> AsyncPetstore:
        """The same client with other options, for some calls: both share connections and limits."""
        other = AsyncPetstore.__new__(AsyncPetstore)
        other._bind(self._connection.with_options(tries, seconds, timeout), self._pool)
        return other

    async def close(self) -> None:
        """Close the connections of this event loop, those of calls under way once they end, and end what
        follows events in it.

        A later call opens new ones.
        """
        await self._pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<AsyncPetstore {self._connection.address}>"

    async def _run(self, call: Call[T]) -> T:
        connection = self._connection
        waiter = _Waiter()
        exchange = Exchange(call, connection.options, connection.limiter, connection.runtime, waiter)
        try:
            answer = await self._carry_out(exchange.steps(), call, waiter)
        finally:
            exchange.warn(stacklevel=3)  # the line of the program that called a method of the client
        return exchange.result(answer)

    async def _carry_out(self, steps: Steps, call: Call[T], waiter: _Waiter) -> Answer:
        connection = self._connection
        outcome: Outcome = None
        try:
            while True:
                with connection.limiter.lock:
                    step = steps.send(outcome)
                if isinstance(step, Send):
                    connection.log(call, step)
                    outcome = await self._send(call, step)
                else:
                    await connection.runtime.wait_async(waiter.event, step.seconds)
                    waiter.event.clear()
                    outcome = None
        except StopIteration as done:
            answer: Answer = done.value
            return answer
        finally:
            with connection.limiter.lock:
                steps.close()

    async def _send(self, call: Call[T], step: Send) -> Answer | Fault:
        content = bytearray()
        async with self._pool.lease() as http:
            try:
                async with http.stream(**self._connection.request(call, step, watch_async)) as response:
                    async for piece in response.aiter_bytes():
                        content += piece
                        if len(content) > LARGEST_ANSWER:
                            break
                    return answer_of(response, content)
            except httpx2.RequestError as error:
                return self._connection.fault(error, call)

    async def _walk(self, call: Call[Page[T]] | None) -> AsyncGenerator[T, None]:
        while call is not None:
            page = await self._run(call)
            for item in page.items:
                yield item
            call = call.after(page)


class AsyncPets:
    """Animals. Each method says which level of key it takes: read, write or manage."""

    def __init__(self, client: AsyncPetstore) -> None:
        self._client = client

    def list(
        self,
        *,
        status: PetStatus | None = None,
        category_id: int | None = None,
        order: PetOrder | None = None,
        ids: Iterable[int] | None = None,
        page_size: int = calls.LARGEST_PAGE,
    ) -> AsyncGenerator[Pet, None]:
        """All animals of the filters, page by page; one call for `page_size` (1 to 100) of them. read."""
        return self._client._walk(calls.list_pets(status, category_id, order, ids, page_size))

    async def get(self, pet_id: int) -> Pet:
        """One animal; raises NotFound. read."""
        return await self._client._run(calls.get_pet(pet_id))

    async def get_many(self, ids: Iterable[int]) -> builtins.list[Pet]:
        """Those of the animals that exist, by ascending id; one call for each 100. read."""
        return [pet for call in calls.get_pets(ids) async for pet in self._client._walk(call)]

    async def get_by_path(self, pet_id: int) -> Pet:
        """Deprecated: use `get`. Warns once (OperationDeprecated), with the date of the removal. read."""
        return await self._client._run(calls.get_pet_by_path(pet_id))

    async def create(
        self,
        *,
        name: str,
        category_id: int,
        status: PetStatus | None = None,
        idempotency_key: str | None = None,
    ) -> Pet:
        """Add an animal, once, whatever the network does. write.

        The client makes an `Idempotency-Key`; give your own to repeat the call in another process.
        """
        return await self._client._run(calls.create_pet(name, category_id, status, idempotency_key))

    async def update(
        self,
        pet_id: int,
        *,
        name: str | None = None,
        category_id: int | None = None,
        status: PetStatus | None = None,
        if_match: str | None = None,
    ) -> Pet:
        """Change what is given; raises NotFound, Conflict, PreconditionFailed. manage.

        With the `etag` of an earlier answer as `if_match`, only if the animal is still as it was; without it
        the call is not repeated after a lost answer.
        """
        return await self._client._run(calls.update_pet(pet_id, name, category_id, status, if_match))

    async def delete(self, pet_id: int, *, if_match: str | None = None) -> None:
        """Remove an animal; raises NotFound, PreconditionFailed, Conflict while an order holds it. manage."""
        await self._client._run(calls.delete_pet(pet_id, if_match))


class AsyncOrders:
    """Orders: the account's own, and for a key of the level manage the changes of all."""

    def __init__(self, client: AsyncPetstore) -> None:
        self._client = client

    def list(
        self,
        *,
        status: OrderStatus | None = None,
        scope: OrderScope | None = None,
        page_size: int = calls.LARGEST_PAGE,
    ) -> AsyncGenerator[Order, None]:
        """The account's orders, page by page: read. With `scope="all"` those of all accounts: manage."""
        return self._client._walk(calls.list_orders(status, scope, page_size))

    async def get(self, order_id: int) -> Order:
        """One order of the account; raises NotFound. read."""
        return await self._client._run(calls.get_order(order_id))

    async def place(self, pet_id: int, *, idempotency_key: str | None = None) -> Order:
        """Order an available animal, once, whatever the network does; raises Conflict. write."""
        return await self._client._run(calls.place_order(pet_id, idempotency_key))

    async def cancel(self, order_id: int, *, if_match: str | None = None) -> None:
        """Cancel an own order; raises NotFound, PreconditionFailed, Conflict when it is delivered. write."""
        await self._client._run(calls.cancel_order(order_id, if_match))

    async def update(
        self,
        order_id: int,
        *,
        status: OrderStatus | None = None,
        ship_date: datetime | None = None,
        if_match: str | None = None,
    ) -> Order:
        """Move any account's order; raises NotFound, Conflict, PreconditionFailed. manage.

        `if_match` is as for an animal.
        """
        return await self._client._run(calls.update_order(order_id, status, ship_date, if_match))


class AsyncCategories:
    """Names that staff gave to categories."""

    def __init__(self, client: AsyncPetstore) -> None:
        self._client = client

    async def list(self) -> builtins.list[Category]:
        """All of them, by ascending id. read."""
        return [*await self._client._run(calls.list_categories())]


class _Waiter:
    """Sleeps on an event of its own, which any thread may set."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def wake(self) -> None:
        with suppress(RuntimeError):  # its loop was closed while it waited
            self._loop.call_soon_threadsafe(self.event.set)
