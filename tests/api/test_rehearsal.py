"""Petstore-Rehearse: any documented answer, in staging alone, without what it would mean."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from petstore.core.errors import BY_CODE
from petstore.core.event_examples import example
from petstore.core.events import TYPES, EventType
from petstore.core.keys import Access, mint
from petstore.core.moments import iso_moment
from petstore.core.rehearsal import EVENT_TYPES
from tests.api.refusals import GOOD
from tests.support import contract
from tests.support.cases import every_case
from tests.support.journal import ACTOR
from tests.support.receiver import receiving
from tests.support.service import Answer, Pairs, Shop, open_shop, settle
from tools.exchanges import arriving

STAGING = "https://staging.example.com/v1"
REHEARSE = "petstore-rehearse"
# Codes whose answer is about the limits of the address, and the headers that the others have besides.
OF_ADDRESSES = {"invalid_request", "unauthorized", "account_suspended", "uri_too_long", "headers_too_large"}
USED_UP = {"retry-after": "60", "x-ratelimit-remaining": "0"}
HEADERS = {
    "unauthorized": {"www-authenticate": 'Bearer realm="petstore", error="invalid_token"'},
    "rate_limited": USED_UP,
    "key_banned": USED_UP,
    **{code: {"retry-after": "1"} for code in ("idempotency_key_in_use", "unavailable", "outcome_unknown")},
}
# A type that is not of the subject.
OTHERS = {kind.subject: "key.*" if kind.subject != "key" else "pet.*" for kind in TYPES}
ERRORS_OF_WRITES = ("outcome_unknown",)  # the request is carried out


@pytest_asyncio.fixture
async def staging(tmp_path: Path) -> AsyncIterator[Shop]:
    """A staging service, on which 500 is an answer like others."""
    async with open_shop(tmp_path, stage="staging") as shop:
        shop.expects_500 = True
        yield shop


async def rehearse(shop: Shop, name: str, value: str, headers: Pairs = (), *, key: str = "") -> Answer:
    """A request of an operation that would be answered well, with the header."""
    call, pairs = GOOD[name], [(REHEARSE, value), *headers]
    if call.document is None:
        return await shop.ask(call.method, call.target, pairs, key=key or None)
    return await shop.send(call.method, call.target, call.document, pairs, key=key or None)


def codes_of(name: str) -> list[str]:
    """The codes of an operation in the contract, and that of a method which its path does not take."""
    call = GOOD[name]
    responses = contract.operation_of(call.target.encode(), call.method)["responses"].values()
    return [
        *(code for each in responses for code in contract.codes_of(contract.resolve(each))),
        "method_not_allowed",
    ]


def said(answer: Answer, *without: str) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body but for the request's name and the mark of a rehearsal."""
    left = {*answer.headers} - {"x-request-id", "petstore-rehearsed", *without}
    return answer.status, {name: answer.headers[name] for name in left}, answer.body


async def test_every_documented_error(staging: Shop) -> None:
    """Each operation's errors are rehearsed: status, code and headers, nothing stored, and the price of one
    request."""
    assert OF_ADDRESSES | HEADERS.keys() <= BY_CODE.keys()
    was, asked = staging.fingerprint(), 0
    for name in GOOD:
        for code in set(codes_of(name)) - {*ERRORS_OF_WRITES}:
            answer = await rehearse(staging, name, code)
            asked += 1
            window = "address" if code in OF_ADDRESSES else "minute"
            assert (answer.status, answer.headers["petstore-rehearsed"]) == (BY_CODE[code].status, code), name
            assert not answer.body or answer.code == code
            assert answer.headers["ratelimit"].startswith(f'"{window}";')
            assert answer.headers.items() >= HEADERS.get(code, {}).items()
    assert staging.fingerprint() == was
    assert (await staging.ask("GET", "/v1/usage")).headers["x-ratelimit-remaining"] == f"{10**6 - asked - 1}"


async def test_the_same_as_a_real_one(staging: Shop) -> None:
    """Body and headers of a used-up limit, a ban, a foreign key and a suspended account."""
    key, _ = await staging.open_account("small", "enterprise", 1, 100)
    limited = await rehearse(staging, "listPets", "rate_limited", key=key)
    assert said(limited) == said(await staging.ask("GET", "/v1/pets", key=key))
    staging.clock.advance(60)
    banned = await rehearse(staging, "listPets", "key_banned", key=key)
    real = await staging.ask("GET", "/v1/pets", key=key)
    staging.clock.advance(3)  # what follows at once was under way
    while real.code == "rate_limited":
        real = await staging.ask("GET", "/v1/pets", key=key)
    moving = ("date", "ratelimit", "x-ratelimit-reset")
    assert said(banned, *moving) == said(real, *moving)
    unauthorized = await rehearse(staging, "listPets", "unauthorized")
    counted = (*moving, "x-ratelimit-remaining")
    assert said(unauthorized, *counted) == said(
        await staging.ask("GET", "/v1/pets", key=mint("test")), *counted
    )
    suspended = await rehearse(staging, "listPets", "account_suspended")
    await staging.store.accounts.suspend("tests", ACTOR)
    assert said(suspended, *counted) == said(await staging.ask("GET", "/v1/pets"), *counted)


@pytest.mark.parametrize("stage", ["production", ""])
async def test_the_header_is_400_outside_staging(tmp_path: Path, stage: str) -> None:
    """400 on every operation, also where the answer is cached, and nothing happens; 401, 403 and 429 come
    first. Without a stage too: it may be a real shop's. Events are 404, whatever is sent."""
    async with open_shop(tmp_path, stage=stage, staging_base_url=STAGING) as shop:
        issued = await shop.store.keys.issue("tests", "live", ACTOR, access=Access.MANAGE)
        key, was = str(issued.secret), shop.fingerprint()
        assert [(await shop.ask("GET", "/v1/pets", key=key)).status for _ in range(2)] == [200, 200]
        for name in GOOD:
            for value in ("rate_limited", "outcome_unknown", "lost", "x"):
                answer = await rehearse(shop, name, value, key=key)
                assert (answer.status, answer.code) == (400, "invalid_header"), name
                assert answer.json()["message"] == (
                    f"Petstore-Rehearse works in staging alone: {STAGING}. Send none here."
                )
                assert "petstore-rehearsed" not in answer.headers
        assert shop.fingerprint() == was
        assert (await rehearse(shop, "listPets", "lost", key=mint("live"))).status == 401
        assert (await shop.ask("GET", "/v1/none", [(REHEARSE, "lost")], key=key)).status == 404
        answer = await shop.send("POST", "/v1/rehearsal/events", {}, key=key)
        assert (answer.status, answer.code) == (404, "not_found")


async def test_after_the_gate(staging: Shop) -> None:
    """A real 401, 403 and 429 come before what is asked for."""
    assert (await rehearse(staging, "listPets", "gone", key=mint("test"))).status == 401
    key, _ = await staging.open_account("reader", "enterprise", 1, 100, Access.READ)
    for status in (403, 429):
        answer = await rehearse(staging, "createPet", "conflict", key=key)
        assert (answer.status, "petstore-rehearsed" in answer.headers) == (status, False)


@every_case(
    "value",
    ["", "conflict", "RATE_LIMITED", "outcome_unknown", "slow", "slow=30001", "slow=-1", "slow=1.5",
     "slow=\xb2", "date=2030-12-5", "date=2030-02-30", "date=20301205", "date=2030-W01-1", "lost=1",
     "x" * 500],
)  # fmt: skip
async def test_what_it_takes(staging: Shop, value: str) -> None:
    """Anything else is refused with a list of what this operation takes."""
    answer = await rehearse(staging, "listPets", value)
    assert (answer.status, answer.code) == (400, "invalid_header")
    assert answer.json()["message"] == (
        "Petstore-Rehearse: this operation takes account_suspended, headers_too_large, internal_error,"
        " invalid_header, invalid_parameter, key_banned, method_not_allowed, rate_limited, unauthorized,"
        " unavailable, uri_too_long, lost, slow=MS up to 30000, date=YYYY-MM-DD."
    )


async def test_the_header_twice_is_refused(staging: Shop) -> None:
    """Nothing says which one counts."""
    answer = await rehearse(staging, "listPets", "lost", [(REHEARSE, "lost")])
    assert (answer.status, answer.json()["message"]) == (400, "Petstore-Rehearse: send one.")


async def test_outcome_unknown_answers_503_after_the_write(staging: Shop) -> None:
    """The write has happened; with the same Idempotency-Key the repetition gets its answer. What fails for
    another reason says so."""
    once = [("idempotency-key", "k")]
    answer = await rehearse(staging, "createPet", "outcome_unknown", once)
    assert (answer.status, answer.code) == (503, "outcome_unknown")
    assert [row[1] for row in staging.pets()] == ["Rex"]
    again = await staging.post(GOOD["createPet"].document, once)
    assert (again.status, again.headers["idempotency-replayed"]) == (201, "true")
    assert (await rehearse(staging, "cancelOrder", "outcome_unknown")).code == "not_found"


async def test_lost_lets_the_write_happen_and_answers_nothing(staging: Shop) -> None:
    """A client sees how it gets over an answer that never came."""
    once = [("idempotency-key", "k")]
    with pytest.raises(ConnectionAbortedError):
        await rehearse(staging, "createPet", "lost", once)
    assert staging.application.service.api.in_flight == 0
    again = await staging.post(GOOD["createPet"].document, once)
    assert (again.status, again.headers["idempotency-replayed"]) == (201, "true")
    with pytest.raises(ConnectionAbortedError):
        await rehearse(staging, "cancelOrder", "lost")


class TestSlow:
    """`slow=MS`."""

    async def test_the_answer_of_that_moment(self, staging: Shop) -> None:
        """A slow answer has the data and limits of its delay's end; it is unmarked and cached as ever."""
        asked = asyncio.create_task(rehearse(staging, "listPets", "slow=2000"))
        await settle()
        await staging.post({"name": "Mia", "categoryId": 2})
        staging.clock.advance(1.9)
        await settle()
        assert not asked.done()
        staging.clock.advance(0.1)
        answer = await asked
        assert (answer.status, [each["name"] for each in answer.json()]) == (200, ["Mia"])
        assert "petstore-rehearsed" not in answer.headers
        assert said(answer, "ratelimit", "x-ratelimit-remaining") == said(
            await staging.ask("GET", "/v1/pets"), "ratelimit", "x-ratelimit-remaining"
        )

    async def test_the_client_goes_away(self, staging: Shop) -> None:
        """Nobody waits on, and nothing happens."""
        sent = [("authorization", f"Bearer {staging.key}"), ("content-type", "application/json")]
        with pytest.raises(ConnectionAbortedError):
            await staging.call(
                "POST", "/v1/pets", [*sent, (REHEARSE, "slow=30000")], arriving([b"{"], leaves=True)
            )
        assert staging.application.service.api.in_flight == 0
        assert staging.pets() == []

    async def test_a_hundred_at_once(self, staging: Shop) -> None:
        """One more is 503 and no trouble of the store; a stop answers all that wait."""
        asked = [asyncio.create_task(rehearse(staging, "getUsage", "slow=30000")) for _ in range(100)]
        await settle()
        answer = await rehearse(staging, "getUsage", "slow=1")
        assert (answer.status, answer.code, answer.headers["petstore-rehearsed"]) == (
            503,
            "unavailable",
            "slow",
        )
        staging.application.begin_drain()
        assert {each.status for each in await asyncio.gather(*asked)} == {200}

    async def test_a_key_that_ends_meanwhile(self, staging: Shop) -> None:
        """The answer is for a key that is good then."""
        asked = asyncio.create_task(rehearse(staging, "createPet", "slow=2000"))
        await settle()
        await staging.store.keys.revoke(staging.key_id, ACTOR)
        staging.clock.advance(2)
        assert (await asked).status == 401
        assert staging.pets() == []


class TestDate:
    """`date=YYYY-MM-DD`."""

    async def test_after_the_removal(self, staging: Shop) -> None:
        """410 as the code `gone`, and `Location` is what stays; the day before all is as today."""
        for value, status in (("date=2030-12-04", 404), ("date=2030-12-05", 410), ("date=9999-12-31", 410)):
            assert (await rehearse(staging, "getPet", value)).status == status
        gone = await rehearse(staging, "getPet", "gone")
        on_the_day = await rehearse(staging, "getPet", "date=2030-12-05")
        moving = ("ratelimit", "x-ratelimit-remaining")
        assert said(gone, *moving) == said(on_the_day, *moving)
        for value, location in (("date=2030-12-04", "/v1/pets/1"), ("date=2030-12-05", "/v1/pets?id=2")):
            assert (await rehearse(staging, "createPet", value)).headers["location"] == location

    async def test_nothing_else_moves(self, staging: Shop) -> None:
        """Limits, the journal and the key's expiry are of today."""
        answer = await rehearse(staging, "createPet", "date=2030-12-05")
        assert answer.status == 201
        now = staging.clock.now_ms() // 1_000
        assert 0 < int(answer.headers["x-ratelimit-reset"]) - now <= 60
        [event] = (await staging.ask("GET", "/v1/events?type=pet.created")).json()
        assert event["timestamp"][:10] == "2027-01-15"

    async def test_a_date_in_the_past_is_refused(self, staging: Shop) -> None:
        """Today is the first day."""
        assert (await rehearse(staging, "listPets", "date=2027-01-15")).status == 200
        answer = await rehearse(staging, "listPets", "date=2027-01-14")
        assert (answer.status, answer.code) == (400, "invalid_header")
        assert answer.json()["message"] == "Petstore-Rehearse: 2027-01-14 is past; name today or a later day."


async def test_a_rehearsal_changes_no_counters(staging: Shop) -> None:
    """Random ones: each costs one, no key comes nearer to a ban, the address has failed never, and neither
    rows nor metrics that wake an operator know of them (seed in the message)."""
    seed = random.randrange(10**6)
    chance, was = random.Random(seed), staging.fingerprint()
    for asked in range(1, 151):
        name = chance.choice(list(GOOD))
        await rehearse(staging, name, chance.choice(sorted({*codes_of(name)} - {*ERRORS_OF_WRITES})))
        if not asked % 50:
            answer = await staging.ask("GET", "/v1/categories")
            assert int(answer.headers["x-ratelimit-remaining"]) == 10**6 - asked - asked // 50, seed
    assert staging.fingerprint() == was, seed
    assert (await staging.call("GET", "/v1/pets")).headers["x-ratelimit-remaining"] == "599", seed
    metrics = (await staging.call("GET", "/metrics")).body.decode()
    assert not re.search(
        r"^petstore_(?:refusals|bans|unauthorized)_total(?!.*missing).* [^0]", metrics, re.M
    ), seed
    assert not re.search(r'^petstore_requests_total\{.*status="5.* [^0]', metrics, re.M), seed
    [today] = (await staging.ask("GET", "/v1/usage")).json()["days"][:1]
    assert today["refused"] == 0, seed


class TestEvents:
    """POST /v1/rehearsal/events."""

    @every_case("kind", EVENT_TYPES.values())
    async def test_each_type_of_event_is_sent_at_once_and_stored_nowhere(
        self, staging: Shop, kind: EventType
    ) -> None:
        """The example of a type comes at once, signed as ever, at each webhook that gets such and is enabled;
        no event, entry or delivery is stored."""
        staging.clock.advance(60)
        made = []
        with receiving() as receiver:
            for types in (["*"], ["*"], [OTHERS[kind.subject]]):
                members = {"url": receiver.address, "types": types}
                made.append((await staging.send("POST", "/v1/webhooks", members)).json())
            await staging.send("PATCH", f"/v1/webhooks/{made[1]['id']}", {"enabled": False})
            was = staging.fingerprint()
            answer = await staging.send("POST", "/v1/rehearsal/events", {"type": kind.name})
            assert staging.fingerprint() == was
        [(headers, body)] = receiver.got
        event = json.loads(body)
        [sent] = answer.json()
        assert (answer.status, sent["webhookId"]) == (200, made[0]["id"])
        assert sent["delivery"]["delivered"] is True
        assert event == msgspec.to_builtins(example(kind)) | {
            "id": sent["delivery"]["eventId"], "timestamp": iso_moment(staging.clock.now_ms())
        }  # fmt: skip
        assert event["id"].startswith("evt_000000000000_")
        given = {name.lower(): value for name, value in headers.items()}
        message = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode() + body
        key = base64.b64decode(made[0]["secret"].removeprefix("whsec_"))
        signature = base64.b64encode(hmac.digest(key, message, "sha256")).decode()
        assert given["webhook-signature"] == f"v1,{signature}"
        for each in made:
            await staging.ask("DELETE", f"/v1/webhooks/{each['id']}")

    async def test_an_event_that_no_webhook_gets_is_an_empty_list(self, staging: Shop) -> None:
        """Another account's webhook does not get it."""
        key, _ = await staging.open_account("other", "pro")
        await staging.send("POST", "/v1/webhooks", {"url": "http://127.0.0.1:1"}, key=key)
        answer = await staging.send("POST", "/v1/rehearsal/events", {"type": "pet.created"})
        assert (answer.status, answer.json()) == (200, [])

    async def test_events_are_409_where_the_operator_sends_nothing(self, tmp_path: Path) -> None:
        """A rehearsal can't send what the service would not."""
        async with open_shop(tmp_path, stage="staging", deliveries="off") as shop:
            answer = await shop.send("POST", "/v1/rehearsal/events", {"type": "pet.created"})
            assert (answer.status, answer.code) == (409, "conflict")
