"""The fake answers as the service does: status, body, and every header."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, cast

import pytest
import pytest_asyncio
from petstore_client.testing import FakePetstore

from petstore.core.keys import Access
from tests.api.refusals import GOOD, Refusal, rows
from tests.api.test_walks import CHANGES, UNCHANGED
from tests.api.world import EVENTS, ORDERS, PETS, WEBHOOKS, Call, World, making, open_world
from tests.support.service import Answer, Pairs, Shop

pytestmark = pytest.mark.asyncio(loop_scope="module")

# The names of events, places and pages, which are opaque.
_OPAQUE = re.compile(rb"evt_[0-9a-f]{12}_\d+|[0-9a-f]{12}-0-\d+|cursor=[\w-]{16}")
_REASON = re.compile(rb"The body is (?:empty|not|nested).*\.")  # in the words of a parser
_MINE = (("x-request-id", "mine"),)
EACH = 6  # requests of a row of the table of refusals
OPERATIONS = [name for name, call in GOOD.items() if not call.target.startswith((WEBHOOKS, "/v1/rehearsal"))]
REFUSALS = rows()
DAY = 86_400


class FakeShop:
    """A fake in place of a Shop."""

    def __init__(self, fake: FakePetstore) -> None:
        self.fake = fake

    async def call(self, method: str, target: str, headers: Pairs, body: bytes) -> Answer:
        """One request, as Shop.call makes it."""
        raw = target.encode().decode("latin-1")
        pairs = [(name, value) for name, value in headers if value is not None]
        answer = self.fake._service.answer(method, raw, pairs, body)
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers.items()]
        return Answer(answer.status, encoded, answer.content)


class Twins:
    """One store in the service and in a fake, at the same time."""

    def __init__(self, real: World, fake: FakePetstore) -> None:
        self.real = real
        self.fake = World(cast(Shop, FakeShop(fake)), lambda _statement: [])
        self._clock = fake.clock

    def advance(self, seconds: float) -> None:
        self.real.shop.clock.advance(seconds)
        self._clock.advance((self.real.shop.clock.ms - self._clock.ms) / 1_000)

    async def ask(self, call: Call, *, all_day: bool = False) -> tuple[Answer, Answer]:
        """One request to both; `all_day` where no other requests of the day went to one of them."""
        call = call._replace(headers=(*call.headers, *_MINE))
        real, fake = await self.real.ask(call), await self.fake.ask(call)
        assert _comparable(fake, all_day=all_day) == _comparable(real, all_day=all_day), str(call)
        return real, fake

    async def walk(self, target: str, level: str = "manage") -> int:
        """All pages of a list; how many. Each is asked for again by its tag, if that is still so."""
        targets, pages = (target, target), 0
        while targets[0]:
            calls = [Call("GET", each, None, level, _MINE) for each in targets]
            answers = await self.real.ask(calls[0]), await self.fake.ask(calls[1])
            real, fake = (_comparable(each) for each in answers)
            assert fake == real, target
            for world, call, answer in zip((self.real, self.fake), calls, answers, strict=True):
                known = (("if-none-match", f'"x", {answer.headers["etag"]}'),)
                again = await world.ask(call._replace(headers=known))
                assert (again.status, again.body) == (304, b"")
            targets = (answers[0].links.get("next", ""), answers[1].links.get("next", ""))
            pages += 1
        return pages


def _comparable(answer: Answer, *, all_day: bool = False) -> tuple[int, list[tuple[str, str]], bytes]:
    """What has to be the same. A tag covers the link, and with that what is opaque in it."""
    body = _REASON.sub(b"", _OPAQUE.sub(b"", answer.body))
    left_out = {"vary"}  # the fake compresses nothing
    if body != answer.body:
        left_out.add("content-length")
    if 'rel="next"' in answer.headers.get("link", ""):
        left_out.add("etag")
    hidden = re.compile(_OPAQUE.pattern.decode() + ("" if all_day else '|"day";r=[0-9]+'))
    headers = [(name, hidden.sub("", value)) for name, value in answer.raw_headers if name not in left_out]
    return answer.status, sorted(headers), body


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def twins(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Twins]:
    """Stores with something of everything."""
    async with open_world("sqlite", tmp_path_factory.mktemp("world")) as world:
        fake = FakePetstore(account="own")
        twins = Twins(world, fake)
        twins.fake.keys = {"other": fake.add_key("write", account="other")}
        twins.fake.keys |= {level: fake.add_key(level) for level in ("read", "write", "manage")}
        for status, call in making():
            if not call.target.startswith(WEBHOOKS):
                await twins.fake.must(status, call)
        yield twins


@pytest.fixture
def minute(twins: Twins) -> Twins:
    """A minute passes without requests."""
    twins.advance(60)
    return twins


def is_simulated(row: Refusal, call: Call) -> bool:
    """The fake simulates neither heads that no client sends nor keys that an operator has stopped."""
    is_head = row.code in {"uri_too_long", "headers_too_large"} or row.names == "Host: "
    has_length = any(name == "content-length" for name, _ in call.headers)
    return not (is_head or has_length or call.level in {"revoked", "suspended", "used-up"})


@pytest.mark.parametrize("name", [*OPERATIONS, "none"])
async def test_the_fake_refuses_as_the_service_does(minute: Twins, name: str) -> None:
    """The first requests of every row of the table of refusals."""
    for row in REFUSALS:
        for call in row.calls[:EACH]:
            if row.operation == name and is_simulated(row, call):
                await minute.ask(call)


async def test_the_fake_answers_every_method_as_the_service_does(minute: Twins) -> None:
    """The fake answers OPTIONS without a key, and methods that a path does not take, as the service does."""
    for target in (PETS, f"{PETS}/1", f"{ORDERS}/1", "/v1/categories", EVENTS, "/v1/usage", "/v1/nothing"):
        for method in ("OPTIONS", "options", "get", "PUT", "TRACE", "FOO-BAR"):
            for headers in ((), (("petstore-rehearse", "conflict"),)):
                for level in ("read", ""):
                    call = Call(method, target, None, level, headers)
                    await minute.ask(call)


async def test_types_of_bodies(minute: Twins) -> None:
    """JSON in UTF-8, whatever else its type says."""
    for charset in (
        "latin-1", "utf-8", "UTF8", '"utf-8"', '"UTF-16"', "", "utf-8; charset=latin1", "utf-8;a=b;;",
        'utf-8; a="x;charset=latin1"', 'utf-8; a="x"; Charset=latin1', "utf-8 x", "ascii",
    ):  # fmt: skip
        headers = (("content-type", f"application/json; charset={charset}"),)
        for call in (GOOD["createPet"], GOOD["updatePet"], GOOD["placeOrder"]):
            await minute.ask(call._replace(headers=headers))
    for media_type in (
        "Application/JSON",
        "application/json ;a=b",
        "application/merge-patch+json; charset=utf-8",
    ):
        headers = (("content-type", media_type),)
        for call in (GOOD["createPet"], GOOD["updatePet"]):
            await minute.ask(call._replace(headers=headers))

    for coding in ("", "Identity", "gzip"):
        headers = (("content-encoding", coding),)
        for call in (GOOD["createPet"], GOOD["updatePet"]):
            await minute.ask(call._replace(headers=headers))


@pytest.mark.parametrize("name", [*OPERATIONS, "none"])
async def test_rehearsals_outside_staging(minute: Twins, name: str) -> None:
    """Are refused where the service reads the header: after the key and its level."""
    calls = [GOOD[name]] if name != "none" else [Call("PUT", PETS), Call("GET", "/v1/nothing")]
    for call in calls:
        for level in ("manage", "read"):
            for headers in (
                (("petstore-rehearse", "conflict"),),
                (("petstore-rehearse", ""), ("if-match", "x")),
            ):
                await minute.ask(call._replace(headers=headers, level=level))


async def test_the_fake_makes_every_change_as_the_service_does(minute: Twins) -> None:
    """Every change of the table of walks, twice, and what changes nothing; then all lists and events."""
    for name in [each for each in OPERATIONS if each != "getUsage"]:
        for call in [*UNCHANGED[name], *(change.call for change in CHANGES[name] * 2)]:
            if call.target != EVENTS:
                await minute.ask(call)
    for condition in ("*", '"x"', '"x", *'):
        call = Call("PATCH", f"{PETS}/4", {"name": condition}, headers=(("if-match", condition),))
        await minute.ask(call)
    for more in ("", "&order=-id", "&status=available", "&categoryId=1&order=-id", "&id=2&id=4,9&id=999"):
        assert await minute.walk(f"{PETS}?limit=2{more}") > 1
    for target in (f"{PETS}?id=1", f"{ORDERS}?limit=1&scope=all", f"{ORDERS}?limit=3", f"{ORDERS}?id=2"):
        await minute.walk(target)
    await minute.walk(f"{ORDERS}?status=placed", "other")
    for level in ("read", "other"):
        for target in ("type=pet.*&type=order.*,category.*&limit=100", "type=order.updated&limit=2"):
            await follow(minute, f"{EVENTS}?{target}", level)


async def follow(twins: Twins, target: str, level: str) -> None:
    """All events, page by page."""
    targets, is_behind = (target, target), True
    while is_behind:
        real, fake = [
            await world.ask(Call("GET", each, None, level, _MINE))
            for world, each in zip((twins.real, twins.fake), targets, strict=True)
        ]
        assert _comparable(fake) == _comparable(real), target
        targets, is_behind = (real.links["next"], fake.links["next"]), "events-behind" in real.headers


async def test_the_fake_heeds_conditions_as_the_service_does(minute: Twins) -> None:
    """The tag of an answer lets one change pass, of an animal and of an order, and then no more."""
    real, _ = await minute.ask(GOOD["createPet"])
    pet_id = real.json()["id"]
    shipped = {"shipDate": "2030-01-01T01:00:00.5+01:00"}
    for target, made, change in ((PETS, None, {"name": "Bo"}), (ORDERS, {"petId": pet_id}, shipped)):
        if made is not None:
            real, _ = await minute.ask(Call("POST", target, made))
        tag, its_id = real.headers["etag"], real.json()["id"]
        await minute.walk(f"{target}?id={its_id}")
        for header in (f"W/{tag}", f'"x", {tag}', tag):
            call = Call("PATCH", f"{target}/{its_id}", change, headers=(("if-match", header),))
            await minute.ask(call)


async def test_answers_asked_for_again(minute: Twins) -> None:
    """304 where the tag is of all that an answer shows; a star is one only alone."""
    for target in (
        f"{PETS}?id=1",
        f"{ORDERS}?id=1",
        f"{ORDERS}?id=1&scope=all",
        f"{ORDERS}?id=999&scope=all",
    ):
        real, _ = await minute.ask(Call("GET", target))
        for known in (real.headers["etag"], " *", '"*"', f'"*", W/{real.headers["etag"]}'):
            again = Call("GET", target, headers=(("if-none-match", known),))
            await minute.ask(again)


@pytest.mark.parametrize(
    ("plan", "agreed", "steps"),
    [
        ("free", {}, [(0.3, 62), (59.0, 1), (0.6, 1), (0.3, 2), (7.0, 60), (DAY, 3)]),
        ("enterprise", {"per_minute": 2, "per_day": 2}, [(0.3, 3), (60.0, 2), (DAY, 1)]),
    ],
)
async def test_limits_and_time(
    twins: Twins, plan: Any, agreed: dict[str, int], steps: list[tuple[float, int]]
) -> None:
    """The windows of a minute and a UTC day, and usage, of a new account, as time passes."""
    shop, now = twins.real.shop, datetime.fromtimestamp(twins.real.shop.clock.ms / 1_000, UTC)
    fake = FakePetstore(account=plan, plan=plan, now=now, **agreed)
    limited = Twins(twins.real, fake)
    limited.real.keys["limited"], _ = await shop.open_account(plan, plan, access=Access.MANAGE, **agreed)
    limited.fake.keys = {"limited": fake.key, "manage": fake.key}
    for seconds, requests in steps:
        limited.advance(seconds)
        for _ in range(requests):
            await limited.ask(Call("GET", "/v1/categories", None, "limited"), all_day=True)
    await shop.application.service.flusher.save()
    await limited.ask(Call("GET", "/v1/usage", None, "limited"), all_day=True)


async def test_the_first_and_the_last_moment(minute: Twins) -> None:
    """An order keeps each of them, however exact, to the millisecond; those beyond are refused."""
    real, _ = await minute.ask(GOOD["createPet"])
    real, _ = await minute.ask(Call("POST", ORDERS, {"petId": real.json()["id"]}))
    for moment in ("0001-01-01T00:00:00.001", "9999-12-31T23:59:59.999999999"):
        for offset in ("Z", "+00:01", "-00:01"):
            change = {"shipDate": f"{moment}{offset}"}
            await minute.ask(Call("PATCH", f"{ORDERS}/{real.json()['id']}", change))


async def test_a_day_of_an_idempotency_key(minute: Twins) -> None:
    """It gives the first answer again for 24 hours, then another animal."""
    keyed = Call("POST", PETS, {"name": "Max", "categoryId": 9}, headers=(("idempotency-key", '"k"'),))
    ids = []
    for seconds in (0, DAY - 1, 1):
        minute.advance(seconds)
        answer, _ = await minute.ask(keyed)
        ids.append(answer.json()["id"])
    assert ids[0] == ids[1] < ids[2]


async def test_the_fake_removes_the_deprecated_operation_too(twins: Twins) -> None:
    """GET /pets/{petId} is gone in both from its date on, and a new animal has another Location."""
    twins.advance(1_922_659_200 - twins.real.shop.clock.ms // 1_000)
    for call in (Call("GET", f"{PETS}/1"), Call("GET", f"{PETS}/x?y=1"), GOOD["createPet"]):
        await twins.ask(call)
