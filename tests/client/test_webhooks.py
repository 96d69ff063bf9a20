"""The operations on webhooks, by both clients, on a script of answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import httpx2
import pytest
from petstore_client import (
    Delivery,
    NoAnswer,
    NotFound,
    Petstore,
    RateLimited,
    UnexpectedAnswer,
    Webhook,
    WebhookWithSecret,
)

from tests.client.kit import DROPPED, Scripted, answer, failure

SHOWN = {
    "id": 3,
    "url": "https://shop.example/hook",
    "types": ["pet.*"],
    "description": "mirror",
    "enabled": False,
    "disabledReason": "failing",
    "failingSince": "2026-11-24T10:00:00.000Z",
    "keyId": 5,
    "createdAt": "2026-11-23T10:00:00.000Z",
}
SECRET = "whsec_" + "a" * 43 + "="
TRY = {
    "eventId": "evt_7f_1",
    "type": "pet.updated",
    "at": "2026-11-25T10:00:00.000Z",
    "durationMs": 120,
    "status": None,
    "fault": "Nobody listens there.",
    "answer": "",
    "delivered": False,
    "nextAt": "2026-11-25T10:00:05.000Z",
}
READ = Webhook(
    3,
    "https://shop.example/hook",
    ("pet.*",),
    "mirror",
    False,
    "failing",
    datetime.fromisoformat("2026-11-24T10:00:00Z"),
    5,
    datetime.fromisoformat("2026-11-23T10:00:00Z"),
)
READ_TRY = Delivery(
    "evt_7f_1",
    "pet.updated",
    datetime.fromisoformat("2026-11-25T10:00:00Z"),
    120,
    None,
    "Nobody listens there.",
    "",
    False,
    datetime.fromisoformat("2026-11-25T10:00:05Z"),
)
WITH_SECRET = answer(201, SHOWN | {"secret": SECRET, "more": 1}, {"ETag": '"w3"'})
ONE = answer(200, SHOWN, {"ETag": '"w3"'})
PENDING = answer(202, {"eventId": "evt_7f_1"})


@pytest.mark.parametrize(
    ("call", "answered", "sent", "result"),
    [
        (lambda webhooks: webhooks.list(), answer(200, [SHOWN]), ("GET", "", None), [READ]),
        (
            lambda webhooks: webhooks.create("u", types=("pet.*", "key.*"), description=""),
            WITH_SECRET,
            ("POST", "", {"url": "u", "types": ["pet.*", "key.*"], "description": ""}),
            WebhookWithSecret(**vars(READ), secret=SECRET),
        ),
        (
            lambda webhooks: webhooks.update(3, url="u", types="pet.*", description="", enabled=False),
            ONE,
            ("PATCH", "/3", {"url": "u", "types": ["pet.*"], "description": "", "enabled": False}),
            READ,
        ),
        (lambda webhooks: webhooks.test(3), answer(200, TRY), ("POST", "/3/test", None), READ_TRY),
        (lambda webhooks: webhooks.test(3), PENDING, ("POST", "/3/test", None), None),
        (
            lambda webhooks: webhooks.rehearse("pet.created"),
            answer(200, [{"webhookId": 3, "delivery": TRY}]),
            ("POST", "/v1/rehearsal/events", {"type": "pet.created"}),
            ((3, READ_TRY),),
        ),
    ],
)
def test_what_is_sent_and_read(
    scripted: Scripted, call: Callable[[Any], Any], answered: httpx2.Response, sent: Any, result: Any
) -> None:
    """Every member, also an empty one; what comes back is read whole, further members left out. What the
    operations do is in test_deliveries.py."""
    petstore, script = scripted(answered)
    assert call(petstore.webhooks) == result
    (request,) = script.requests
    path = request.url.raw_path.decode().removeprefix("/v1/webhooks")
    assert (request.method, path, json.loads(request.content or b"null")) == sent


def test_a_secret_is_not_shown(scripted: Scripted) -> None:
    """A log of what came back does not have it. The tag is there for `if_match`."""
    petstore, script = scripted(WITH_SECRET, ONE)
    made = petstore.webhooks.create("https://shop.example/hook")
    assert (made.secret, made.etag) == (SECRET, '"w3"')
    assert "mirror" in repr(made)
    assert SECRET[6:] not in repr(made)
    assert petstore.webhooks.update(3, enabled=True, if_match=made.etag).etag == '"w3"'
    assert script.requests[1].headers["If-Match"] == '"w3"'


def test_a_creation_without_an_answer_is_repeated_under_its_key(scripted: Scripted) -> None:
    """There is one webhook, whose secret the replay shows again."""
    petstore, script = scripted(DROPPED, WITH_SECRET)
    assert petstore.webhooks.create("https://shop.example/hook").secret == SECRET
    first, second = [request.headers["Idempotency-Key"] for request in script.requests]
    assert first == second


@pytest.mark.parametrize("method", ["rotate_secret", "test"])
def test_what_would_take_place_twice_is_not_repeated(scripted: Scripted, method: str) -> None:
    """Another secret, another event. A failure before that is."""
    petstore, script = scripted(failure(503, "unavailable"), DROPPED)
    with pytest.raises(NoAnswer) as caught:
        getattr(petstore.webhooks, method)(3)
    assert caught.value.outcome_unknown
    assert len(script.requests) == 2


def test_a_repeated_removal_that_finds_nothing_took_place(scripted: Scripted) -> None:
    """An identifier never comes back. One that was not there before is NotFound."""
    absent = failure(404, "not_found")
    petstore, _ = scripted(DROPPED, absent)
    petstore.webhooks.delete(3)
    with pytest.raises(NotFound):
        petstore.webhooks.delete(3)


def test_the_limit_of_tests_holds_up_no_other_call(scripted: Scripted) -> None:
    """It is not a limit of the key, which has calls left; the test itself waits as it is asked."""
    refused = failure(429, "rate_limited", retry_after="40")
    petstore, script = scripted(refused, answer(200, []), refused, answer(200, TRY))
    with pytest.raises(RateLimited) as caught:
        petstore.with_options(seconds=30).webhooks.test(3)
    assert caught.value.retry_after_seconds == 40
    assert petstore.categories.list() == []
    assert petstore.webhooks.test(3) == READ_TRY
    assert script.waits == [0, 0, 40]


def test_a_test_that_the_keys_limit_refuses_holds_up_all(scripted: Scripted) -> None:
    """A refused test stops other calls as any refusal does: they get its sentence, or wait for its time."""
    spent = answer(429, {"code": "rate_limited", "message": "Wait."}, {"Retry-After": "9"}, left=0, reset=9)
    petstore, script = scripted(spent, answer(200, []))
    impatient = petstore.with_options(seconds=5)
    for call in (lambda: impatient.webhooks.test(3), impatient.categories.list):
        with pytest.raises(RateLimited, match="Wait"):
            call()
    petstore.categories.list()
    assert script.waits == [9]


@pytest.mark.parametrize("event_id", ["", "..", "evt_1/../../pets", "evt_1?x", "evt_%2e", "pet"])
def test_a_text_that_is_no_events_id_is_not_sent(scripted: Scripted, event_id: str) -> None:
    """It might name another path."""
    petstore, script = scripted(PENDING)
    with pytest.raises(ValueError, match="`id` of an Event"):
        petstore.webhooks.redeliver(3, event_id)
    with pytest.raises(ValueError, match="url, description, enabled, after"):
        petstore.webhooks.update(3)
    assert script.requests == []


@pytest.mark.parametrize("document", [SHOWN, SHOWN | {"secret": None}, [], {"eventId": "evt_7f_1"}])
def test_a_webhook_without_its_secret_is_no_answer(scripted: Scripted, document: object) -> None:
    """Nobody could verify what it sends."""
    petstore: Petstore
    petstore, _ = scripted(answer(201, document))
    with pytest.raises(UnexpectedAnswer):
        petstore.webhooks.create("https://shop.example/hook")
