"""Schemathesis before the real service: what it knows of the interface, and what no schema tells it."""

from __future__ import annotations

import asyncio
import copy
import re
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import schemathesis
from schemathesis.checks import load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.generation.feedback import FeedbackSources
from schemathesis.pytest._test_builder import build_operation_test
from schemathesis.python._constants.orchestrator import make_constants_value_source

from petstore.api.orders import bind_orders, read_order_query
from petstore.api.pets import bind_cursor, read_page_query
from petstore.api.pipeline.paging import START, write_cursor
from petstore.core.errors import InvalidParameter
from petstore.core.keys import Access, Caller
from petstore.wiring.application import Application
from tests.support import contract
from tests.support.clock import ManualClock
from tests.support.postgres import fresh_database, run
from tests.support.service import Shop, application_for
from tests.support.valkey import emptied_url
from tests.support.windows import limits_of
from tools.exchanges import send as send_whole

# Besides success, what a request that satisfies the document may meet: what the client has, something that is
# not there, an animal or an order in another state or with another tag, and an Idempotency-Key that is in use
# or was used for something else.
_MAY_MEET = ["2xx", "304", "404", "409", "412", "422"]
# What a request that violates the document is answered; too much of anything is 413, 414 or 431.
_MUST_MEET = ["400", "401", "404", "405", "413", "414", "415", "431"]
_PLENTY = 1_000_000_000
_BOOKMARK = re.compile(r"[0-9a-f]{12}-[0-9]{1,19}-[0-9]{1,19}", re.ASCII)
_URL = re.compile(r"(?i:https?)://[!-~]{1,1992}", re.ASCII)
_SECONDS = re.compile(r"[1-9][0-9]?|1[01][0-9]|120", re.ASCII)
_CALLER = Caller(1, 1, limits_of(_PLENTY, _PLENTY), access=Access.MANAGE)  # whose key is used


def config(max_examples: int, *, deterministic: bool) -> SchemathesisConfig:
    """Every check; examples, edges and fuzzing with at most so many examples for each operation."""
    return SchemathesisConfig.from_dict(
        {
            "checks": {
                "positive_data_acceptance": {"expected-statuses": _MAY_MEET},
                "negative_data_rejection": {"expected-statuses": _MUST_MEET},
            },
            "generation": {
                "max-examples": max_examples,
                "deterministic": deterministic,
                "database": "none",
                # We send a good key; the check of it sends none and a bad one.
                "with-security-parameters": False,
            },
        }
    )


def schema_of(settings: SchemathesisConfig, door: Door) -> Any:
    """The document as Schemathesis sees it, with the service behind `door`."""
    # A copy, since it resolves references within the document that it is given.
    document = copy.deepcopy(contract.document())
    # Told in words there: openapi-generator refuses a document in which a link has an object as its body.
    links = document["paths"]["/pets"]["post"]["responses"]["201"]["links"]
    links["placeOrder"]["requestBody"] = {"petId": "$response.body#/id"}
    schema = schemathesis.openapi.from_dict(document, config=settings)
    schema.app = door
    return schema


class Door:
    """The application that a schema knows: the service lives in an event loop of its own behind it, since
    Schemathesis makes a new loop for each request."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._behind: Application | None = None

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Wait for something in the service's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=60)

    @contextmanager
    def opened(self, application: Application) -> Iterator[None]:
        """Serve it."""
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        try:
            self.run(application.start())
            self._behind = application
            yield
            self.run(application.stop())
        finally:
            self._behind = None
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for step in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{step}.complete"})
            return
        received = [await receive()]
        while received[-1].get("more_body"):
            received.append(await receive())
        assert self._behind is not None
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        body = b"".join(message.get("body", b"") for message in received)
        asked = send_whole(self._behind, scope["method"], target, list(scope["headers"]), body)
        answered = asyncio.run_coroutine_threadsafe(asked, self._loop)
        status, headers, content = await asyncio.wrap_future(answered)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})


class _Hasty(ManualClock):
    """Each reading moves the time on, so that an account may test its webhooks without end."""

    def monotonic(self) -> float:
        self.advance(7)
        return super().monotonic()


class Behind:
    """The service behind a door, with animals, orders and a webhook. `headers` have a key that may do
    everything. Nobody waits there: a test of a webhook is answered at once."""

    def __init__(self, door: Door, path: Path, database_url: str | None) -> None:
        self._door = door
        self._path = path
        self._database_url = database_url
        settings = {"address_per_minute": str(_PLENTY)}
        if database_url is not None:
            settings |= {"database_url": database_url, "valkey_url": emptied_url()}
        clock = _Hasty()
        self.application = application_for(path, clock, settings)
        self._shop = Shop(self.application, clock, path, steers_counters=False)
        self._prepared = b""
        self.headers: dict[str, str] = {}

    def fill(self) -> None:
        """Make an account and its key, and the animals and orders."""
        self._shop.key, _ = self._door.run(
            self._shop.open_account("fuzz", "enterprise", _PLENTY, _PLENTY, Access.MANAGE)
        )
        self.headers = {"Authorization": f"Bearer {self._shop.key}"}
        self._door.run(self._add_all())
        if self._database_url is None:
            self._door.run(self.application.stop())
            self._prepared = self._path.read_bytes()
            self._door.run(self.application.start())
        self._end_waits()

    def begin_anew(self) -> None:
        """All that `fill` made is there again, with the same identifiers."""
        self._door.run(self.application.stop())
        if self._database_url is None:
            self._path.write_bytes(self._prepared)
            self._door.run(self.application.start())
        else:
            run(self._database_url, "TRUNCATE pets, orders, creations, webhooks RESTART IDENTITY CASCADE")
            self._door.run(self.application.start())
            self._door.run(self._add_all())
        self._end_waits()

    def _end_waits(self) -> None:
        async def end() -> None:
            self.application.service.waits.end()

        self._door.run(end())

    async def _add_all(self) -> None:
        for number in range(30):
            status = ("available", "pending", "sold")[number % 3]
            await self._shop.post({"name": f"n{number}", "categoryId": number, "status": status})
        for pet_id in range(1, 16, 3):
            answer = await self._shop.send("POST", "/v1/store/orders", {"petId": pet_id})
            assert answer.status == 201
        answer = await self._shop.send("POST", "/v1/webhooks", {"url": "https://shop.example"})
        assert answer.status == 201


@contextmanager
def service_behind(door: Door, backend: str, folder: Path) -> Iterator[Behind]:
    """The service on a fresh database."""
    with ExitStack() as made:
        url = None if backend == "sqlite" else made.enter_context(fresh_database(migrated=True))
        behind = Behind(door, folder / "petstore.db", url)
        made.enter_context(door.opened(behind.application))
        behind.fill()
        yield behind


def speak_as_a_client(case: schemathesis.Case) -> None:
    """What no schema expresses.

    A cursor comes from the service, for its filters, and a bookmark too. `after` is sent without a cursor.
    The host of a URL is public. Nobody waits for events. `1.0` is an integer to JSON Schema, and none to us.
    A header is text; 0 counts as one to Schemathesis, whatever the pattern says.
    """
    if isinstance(case.body, dict):
        for name, value in case.body.items():
            if isinstance(value, float) and value.is_integer():
                case.body[name] = int(value)
            if name == "url" and _URL.fullmatch(str(value)):
                case.body[name] = "https://shop.example/hook"
            if name == "after" and _BOOKMARK.fullmatch(str(value)):
                case.body[name] = "now"
    for name, value in case.headers.items():
        case.headers[name] = "*" if (name, str(value)) == ("If-Match", "0") else str(value)
    if _BOOKMARK.fullmatch(str(case.query.get("after"))):
        case.query["after"] = "now"
    if _SECONDS.fullmatch(str(case.query.get("wait"))):
        case.query["wait"] = 0
    cursor, bind = case.query.get("cursor"), _BINDINGS.get(case.operation.definition.raw["operationId"])
    if not isinstance(cursor, str) or len(cursor) != 16 or not cursor.isascii():
        return
    if bind is None:
        case.query["cursor"] = START
    else:
        case.query.pop("after", None)
        filters = {name: value for name, value in case.query.items() if name != "cursor"}
        try:
            pairs = parse_qsl(urlencode(filters, doseq=True), keep_blank_values=True)
            case.query["cursor"] = write_cursor(1, bind([(name, "=", value) for name, value in pairs]))
        except InvalidParameter:
            return


def _bind_pets(pairs: Any) -> int:
    return bind_cursor(read_page_query(pairs))


def _bind_orders(pairs: Any) -> int:
    query = read_order_query(pairs, _CALLER)
    return bind_orders(query.account_id, query.status, query.ids)


# What a cursor is bound to, by the operation that takes it.
_BINDINGS: Mapping[str, Callable[[Any], int]] = {"listPets": _bind_pets, "listOrders": _bind_orders}


def chain_of(schema: Any, behind: Behind) -> Any:
    """A state machine that follows the document's links."""

    class Chain(schema.as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:  # each chain has the same answers, however often it is tried
            behind.begin_anew()

        def before_call(self, case: schemathesis.Case) -> None:
            speak_as_a_client(case)

        def get_call_kwargs(self, _case: schemathesis.Case) -> dict[str, Any]:
            return {"headers": behind.headers}

    return Chain


def try_all(schema: Any, behind: Behind, name: str) -> None:
    """Send an operation its examples, its edges and what is drawn, and check each answer.

    As `schema.parametrize` does, which makes the cases of all operations when tests are collected.
    """

    def check(case: schemathesis.Case) -> None:
        speak_as_a_client(case)
        case.call_and_validate(headers=behind.headers)

    load_all_checks()
    operation = schema.find_operation_by_id(name)
    build_operation_test(
        config=schema.config,
        operation=operation,
        test_func=check,
        given_kwargs={},
        feedback=FeedbackSources(constants_value_source=make_constants_value_source(schema)),
    )()
