"""Every row of the table of refusals: the whole answer, nothing stored, the cost (I11, I12, I13, I18)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from itertools import groupby

import pytest
import pytest_asyncio

from tests.api.refusals import ALLOWED, GOOD, PATCHES, TABLE, Refusal, rows
from tests.api.world import Call, World, open_world
from tests.support.service import Answer

pytestmark = pytest.mark.asyncio(loop_scope="module")

MINE = (("x-request-id", "mine"),)
REFUSALS = {name: list(alike) for name, alike in groupby(sorted(rows(), key=str), key=str)}
# What the first of the two windows shows after so many requests.
COSTS: dict[str, Callable[[int], str]] = {
    "minute": lambda count: f'"minute";r={10**6 - count};',
    "address": lambda count: f'"address";r={600 - count};',
    "nothing": lambda _count: '"address";r=600;',
    "used-up": lambda _count: '"minute";r=10;',
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world("sqlite", tmp_path_factory.mktemp("world"), stage="staging") as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def on_postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with open_world("postgres+valkey", tmp_path_factory.mktemp("world"), stage="staging") as opened:
        yield opened


def check(row: Refusal, call: Call, answer: Answer) -> None:
    """The error and the headers that belong to it; Shop has checked what the contract says of all."""
    came = (row.names, str(call), answer.status, answer.body)
    assert answer.status == row.status, came
    assert answer.headers["link"].endswith(f'/docs/errors#{row.code}>; rel="help"'), came
    assert answer.headers["x-request-id"] == "mine"
    assert "location" not in answer.headers
    assert 'rel="next"' not in answer.headers["link"]
    if call.method != "HEAD":
        assert row.names in answer.json()["message"], came
        assert len(answer.json()["message"]) < 1_000
    if answer.status == 401:
        sent = any(name == "authorization" for name, _ in call.headers) or call.level == "revoked"
        error = ', error="invalid_token"' if sent else ""
        assert answer.headers["www-authenticate"] == f'Bearer realm="petstore"{error}', came
    if answer.status == 405:
        assert answer.headers["allow"] == ALLOWED[row.operation]
    if answer.status == 415:
        assert answer.headers.get("accept-patch") == (PATCHES if call.method == "PATCH" else None)


async def test_every_operation_and_path_is_named() -> None:
    """An operation that is added says here how it is asked for, and what its path takes."""
    assert set(GOOD) == set(TABLE)
    assert {TABLE[name].path for name in ALLOWED} == {row.path for row in TABLE.values()}


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_each_refusal_is_as_its_row_says(world: World, refusal: str) -> None:
    """Each request of the rows: status, code, message and headers; nothing is stored."""
    was = world.fingerprint()
    world.shop.clock.advance(60)  # a minute that nobody has used; all together are less than a day
    asked = [(row, call) for row in REFUSALS[refusal] for call in row.calls]
    for count, (row, call) in enumerate(asked, 1):
        answer = await world.ask(call._replace(headers=(*call.headers, *MINE)))
        check(row, call, answer)
        assert answer.headers["ratelimit"].startswith(COSTS[row.costs](count)), str(call)
    assert world.fingerprint() == was, [str(call) for _, call in asked]


@pytest.mark.parametrize("name", TABLE)
async def test_refusals_are_alike_on_postgresql_and_valkey(on_postgres: World, name: str) -> None:
    """The first request of each row that asks the store, where the counters are in Valkey (I9)."""
    was = on_postgres.fingerprint()
    for row in rows():
        if row.operation == name and row.status in (401, 403, 404, 409, 412, 422, 429):
            call = row.calls[0]
            check(row, call, await on_postgres.ask(call._replace(headers=(*call.headers, *MINE))))
    assert on_postgres.fingerprint() == was
