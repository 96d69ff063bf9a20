"""Schemathesis against our own document, in process, with all of its checks: examples, edges, fuzzing, links.

The same requests on every run (derandomised).
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
import schemathesis
from hypothesis import settings
from schemathesis.config import SchemathesisConfig

from petstore.api.orders import bind_orders, read_order_query
from petstore.api.pets import bind_cursor, read_page_query
from petstore.api.pipeline.paging import write_cursor
from petstore.core.errors import InvalidParameter
from petstore.core.keys import Access
from petstore.wiring.asgi import Application
from tests.api import contract
from tests.api.checks import application_for, open_checked
from tests.support.clock import ManualClock

# Besides success, what a request that satisfies the document may meet: an animal that is not there, and an
# Idempotency-Key that is in use or was used for another animal (the only meaning of 422).
_MAY_MEET = ["2xx", "404", "409", "422"]
# What a request that violates the document is answered; too much of anything is 413, 414 or 431.
_MUST_MEET = ["400", "401", "404", "405", "413", "414", "415", "431"]
_PLENTY = 1_000_000_000
_ACCOUNT = 2  # the one whose key is used


async def _prepare(folder: Path) -> str:
    """A database with some animals; the key of an account that can't run out."""
    async with open_checked(folder) as shop:
        for number in range(30):
            status = ("available", "pending", "sold")[number % 3]
            await shop.post({"name": f"n{number}", "categoryId": number, "status": status})
        key, _ = await shop.open_account("fuzz", "enterprise", _PLENTY, _PLENTY, Access.MANAGE)
        for pet_id in range(1, 31, 3):
            await shop.send("POST", "/v1/store/orders", {"petId": pet_id}, key=key)
    return key


CONFIG = SchemathesisConfig.from_dict(
    {
        "checks": {
            "positive_data_acceptance": {"expected-statuses": _MAY_MEET},
            "negative_data_rejection": {"expected-statuses": _MUST_MEET},
        },
        "generation": {
            "max-examples": 60,
            "deterministic": True,
            "database": "none",
            "with-security-parameters": False,  # we send a good key; the check of it sends none and a bad one
        },
    }
)


class Door:
    """The application that the schema knows: services on copies of the database that the fixture prepares."""

    prepared: bytes
    path: Path
    _behind: Application | None = None
    _begins_anew = True

    def begin_anew(self) -> None:
        """The next request finds the database as it was prepared."""
        self._begins_anew = True

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                assert (await receive())["type"] == f"lifespan.{event}"
                await self._stop()
                await send({"type": f"lifespan.{event}.complete"})
            return
        if self._behind is None or self._begins_anew:
            await self._stop()
            self.path.write_bytes(self.prepared)
            behind = application_for(self.path, ManualClock(), {"address_per_minute": str(_PLENTY)})
            await behind.start()
            self._behind, self._begins_anew = behind, False
        await self._behind(scope, receive, send)

    async def _stop(self) -> None:
        behind, self._behind = self._behind, None
        if behind is not None:
            await behind.stop()


DOOR = Door()
# A copy, since it resolves references within the document that it is given.
schema = schemathesis.openapi.from_dict(copy.deepcopy(contract.document()), config=CONFIG)
schema.app = DOOR


@pytest.fixture(scope="module")
def authorized(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Puts the service behind the document; the header that lets a request in."""
    folder = tmp_path_factory.mktemp("schemathesis")
    key = asyncio.run(_prepare(folder))
    DOOR.prepared = (folder / "petstore.db").read_bytes()
    DOOR.path = folder / "copy.db"
    DOOR.begin_anew()
    return {"Authorization": f"Bearer {key}"}


def _speak_as_a_client(case: schemathesis.Case) -> None:
    """What no schema expresses.

    A cursor comes from the service, for its filters. `1.0` is an integer to JSON Schema, and none to us. A
    header is text.
    """
    if isinstance(case.body, dict):
        for name, value in case.body.items():
            if isinstance(value, float) and value.is_integer():
                case.body[name] = int(value)
    for name, value in case.headers.items():
        case.headers[name] = str(value)
    cursor = case.query.get("cursor")
    if isinstance(cursor, str) and len(cursor) == 16 and cursor.isascii():
        filters = {name: value for name, value in case.query.items() if name != "cursor"}
        pairs = parse_qsl(urlencode(filters, doseq=True), keep_blank_values=True)
        parameters = [(name, "=", value) for name, value in pairs]
        try:
            if case.operation.path == "/store/orders":
                orders = read_order_query(parameters, _ACCOUNT)
                bound = bind_orders(_ACCOUNT, orders.status, orders.ids)
            else:
                page = read_page_query(parameters)
                bound = bind_cursor(page.status, page.ids, page.category_id, page.newest_first)
        except InvalidParameter:
            return
        case.query["cursor"] = write_cursor(1, bound)


def _check(case: schemathesis.Case, authorized: dict[str, str]) -> None:
    """Whatever is generated, by the document or against it, is answered as the document says."""
    _speak_as_a_client(case)
    case.call_and_validate(headers=authorized)


def _test_of(name: str) -> Callable[..., None]:
    @schema.include(operation_id=name).parametrize()
    def test(case: schemathesis.Case, authorized: dict[str, str]) -> None:
        """The operation keeps the contract."""
        _check(case, authorized)

    tested: Callable[..., None] = test
    return tested


def _names() -> list[str]:
    results: Iterable[Any] = schema.get_all_operations()
    return [result.ok().definition.raw["operationId"] for result in results]


# One test for each operation: parametrised ones share a name, and parallel runs would skip some of them.
globals().update({f"test_{name}": _test_of(name) for name in _names()})


def test_links(authorized: dict[str, str]) -> None:
    """Chains of requests along the document's links: what was created can be read."""

    class Chain(schema.as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:  # each chain has the same answers, however often it is tried
            DOOR.begin_anew()

        def before_call(self, case: schemathesis.Case) -> None:
            _speak_as_a_client(case)

        def get_call_kwargs(self, _case: schemathesis.Case) -> dict[str, Any]:
            return {"headers": authorized}

    Chain.run(
        settings=settings(
            max_examples=20, stateful_step_count=6, derandomize=True, database=None, deadline=None
        )
    )
