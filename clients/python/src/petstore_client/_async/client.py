"""The client: its options, and the methods by what they are about."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Self, TypeVar

import httpx2

from petstore_client import calls
from petstore_client._async.events import AsyncEvents
from petstore_client._async.resources import AsyncCategories, AsyncOrders, AsyncPets
from petstore_client._async.runner import AsyncRunner
from petstore_client._async.webhooks import AsyncWebhooks
from petstore_client.answers import Answer, Answered
from petstore_client.connection import Connection
from petstore_client.limits import Limits
from petstore_client.models import Usage
from petstore_client.policy import Options
from petstore_client.pool import AsyncPool
from petstore_client.runtime import PROCESS, Runtime
from petstore_client.waiters import AsyncCalls

_T = TypeVar("_T")


class AsyncPetstore:
    """A client of the pet store service: Petstore for threads, AsyncPetstore for asyncio.

    All threads may share one Petstore; all tasks, also those of several event loops, one AsyncPetstore.
    Do not call Petstore inside an event loop: it blocks the loop, and may deadlock. Use AsyncPetstore there.

    * `base_address`: the service's, with or without `/v1`. Plain http is for this machine, or `allow_http`.
    * `tries`: a call fails with its `tries`-th fault.
    * `seconds`: a call ends within them in all: waiting for the limits, every try and the whole answer. A
      change that is cut then is of unknown outcome, as after a lost answer. With 0 a call does not wait, and
      its one try has `timeout` seconds.
    * `timeout`: a try ends after `timeout` seconds in which nothing comes, or with the call. In threads the
      look-up of the host's name, and `timeout` for each further address of it, come on top.
    * `transport`, `runtime`: for tests.

    Raises ConfigurationError.
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
        self._bind(AsyncRunner(connection, AsyncPool(connection.address, transport)))

    def _bind(self, runner: AsyncRunner) -> None:
        self._runner = runner
        self.pets = AsyncPets(runner)
        self.orders = AsyncOrders(runner)
        self.categories = AsyncCategories(runner)
        self.events = AsyncEvents(runner)
        self.webhooks = AsyncWebhooks(runner)

    @property
    def limits(self) -> Limits | None:
        """What the last answer to this key said is left; None before the first answer."""
        return self._runner.connection.limiter.limits

    async def usage(self) -> Usage:
        """The account's plan, what it has used, and its last 90 days. Costs one call."""
        return await self._runner.run(calls.get_usage())

    def with_options(
        self,
        *,
        tries: int | None = None,
        seconds: float | None = None,
        timeout: float | None = None,
        headers: Mapping[str, str] | None = None,
        request_id: str | None = None,
    ) -> AsyncPetstore:
        """A client with other options, for some calls: it and this one share connections and limits.

        `headers` are sent beside the client's own, which they can't replace, and beside those given before.
        The service keeps `request_id`, 1 to 128 letters, digits and `._:/+=@-`, for the answer and for
        its log. Raises ConfigurationError.
        """
        runner = self._runner
        connection = runner.connection.with_options(tries, seconds, timeout, headers, request_id)
        return self._sharing(AsyncRunner(connection, runner.pool, runner.answers))

    async def with_response(self, call: AsyncCalls[AsyncPetstore, _T]) -> Answered[_T]:
        """What `call` returns, with status, headers and request id of its last answer.

        `call` gets this client: `with_response(lambda petstore: petstore.pets.get(7))`. Raises ValueError if
        there was no answer, as with `list`, whose calls are made during the iteration: take `page`.
        """
        answers: deque[Answer] = deque(maxlen=1)
        value = await call(self._sharing(AsyncRunner(self._runner.connection, self._runner.pool, answers)))
        if not answers:
            raise ValueError("with_response needs a call with an answer. For a list use `page`, not `list`.")
        (answer,) = answers
        return Answered(value, answer.status, answer.headers, answer.request_id)

    def _sharing(self, runner: AsyncRunner) -> AsyncPetstore:
        other = AsyncPetstore.__new__(AsyncPetstore)
        other._bind(runner)
        return other

    async def close(self) -> None:
        """Close the connections, those that calls use once they end, and end what follows events.

        With AsyncPetstore only the connections of this event loop. A later call opens new ones.
        """
        await self._runner.pool.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._runner.connection.address}>"
