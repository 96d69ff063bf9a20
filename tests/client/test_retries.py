"""What is repeated, when, and what the error says about the outcome; on scripts of answers."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import httpx2
import pytest
from petstore_client import (
    IdempotencyKeyInUse,
    InternalError,
    NoAnswer,
    NotFound,
    NotSent,
    Petstore,
    PetstoreError,
    RateLimited,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
)

from tests.client.kit import ADDRESS, KEY, Script, answer, failure, scripted

PET = {"id": 7, "name": "Rex", "categoryId": 1, "status": "available"}
DROPPED = httpx2.ReadError("the connection ended")
HUNG_UP = httpx2.RemoteProtocolError("Server disconnected without sending a response.")
UNREACHABLE = httpx2.ConnectError("nobody listens")
UNKNOWN = failure(503, "outcome_unknown")
# What 1.1.0 and its nginx say instead.
KEPT = failure(503, "unavailable", "The store failed; whether this write was kept is unknown. Look first.")
CARRIED_OUT = failure(503, "unavailable", "Out of reach. Whether a write was carried out is unknown: retry.")


def refusal(seconds: int) -> httpx2.Response:
    return failure(429, "rate_limited", retry_after=str(seconds))


def create(petstore: Any, **more: Any) -> Any:
    return petstore.pets.create(name="Rex", category_id=1, **more)


def test_a_creation_repeats_under_one_key_of_its_own(kind: str) -> None:
    """After lost answers and 503 alike, so that one animal is added."""
    lost: list[Any] = [DROPPED, httpx2.ReadTimeout("silence"), UNKNOWN]
    with scripted(kind, *lost, answer(201, PET)) as (petstore, script):
        assert create(petstore).id == 7
    keys = {request.headers["idempotency-key"] for request in script.requests}
    assert len(script.requests) == 4
    assert len(keys) == 1
    assert len(keys.pop()) == 36


def test_two_creations_have_two_keys(kind: str) -> None:
    """And a given key is sent as it is."""
    with scripted(kind, answer(201, PET)) as (petstore, script):
        for given in (None, None, "mine"):
            create(petstore, idempotency_key=given)
    keys = [request.headers["idempotency-key"] for request in script.requests]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


@pytest.mark.parametrize(
    "lost", [DROPPED, HUNG_UP, UNKNOWN, KEPT, CARRIED_OUT, answer(502, content=b"<html>")]
)
def test_a_change_of_unknown_outcome_is_not_repeated(kind: str, lost: Any) -> None:
    """A PATCH might undo what somebody else changed meanwhile. The error says that the outcome is unknown."""
    with scripted(kind, lost) as (petstore, script):
        with pytest.raises(PetstoreError) as of_pet:
            petstore.pets.update(7, status="sold")
        with pytest.raises(PetstoreError) as of_order:
            petstore.orders.update(7, status="approved")
    assert of_pet.value.outcome_unknown
    assert of_order.value.outcome_unknown
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    "refused",
    [
        UNREACHABLE,
        httpx2.PoolTimeout("no connection is free"),
        failure(503, "unavailable", retry_after="1"),
        failure(503, "unavailable", "Its cause is unknown; nothing was stored."),
        failure(500, "internal_error"),
        failure(408, "request_timeout"),
        failure(429, "rate_limited", retry_after="5"),
    ],
)
def test_a_change_that_surely_did_not_happen_is_repeated(kind: str, refused: Any) -> None:
    """Nothing was sent, or the service says that it changed nothing."""
    with scripted(kind, refused, answer(200, PET)) as (petstore, script):
        assert petstore.pets.update(7, name="Rex").id == 7
    assert len(script.requests) == 2


def test_a_removal_repeats_and_finds_nothing(kind: str) -> None:
    """Its identifier is never used again, so the 404 of a repetition says that it is gone."""
    with scripted(kind, DROPPED, failure(404, "not_found")) as (petstore, _):
        assert petstore.pets.delete(7) is None
    with scripted(kind, UNREACHABLE, failure(404, "not_found")) as (petstore, _), pytest.raises(NotFound):
        petstore.pets.delete(7)


def test_a_cancellation_repeats(kind: str) -> None:
    """A cancelled order stays cancelled; one that does not exist is NotFound, repeated or not."""
    with scripted(kind, DROPPED, answer(204, content=b"")) as (petstore, script):
        petstore.orders.cancel(7)
    assert len(script.requests) == 2
    with (
        scripted(kind, DROPPED, failure(404, "not_found")) as (petstore, _),
        pytest.raises(NotFound) as caught,
    ):
        petstore.orders.cancel(7)
    assert caught.value.outcome_unknown is False


def test_the_last_error_is_raised_when_the_tries_are_used_up(kind: str) -> None:
    """With the address, the key under which the creation may be repeated, and that its outcome is unknown."""
    with scripted(kind, DROPPED, UNREACHABLE, tries=2) as (petstore, script):
        with pytest.raises(NotSent, match=rf"from {ADDRESS}/v1.*nobody listens") as caught:
            create(petstore)
        assert caught.value.outcome_unknown
        assert caught.value.idempotency_key == script.requests[0].headers["idempotency-key"]
        with pytest.raises(NotSent) as unsent:
            create(petstore)
    assert unsent.value.outcome_unknown is False
    assert len(script.requests) == 4


@pytest.mark.parametrize(
    ("refusal", "unknown"), [(failure(409, "conflict"), False), (failure(401, "unauthorized"), True)]
)
def test_a_refused_repetition_tells_whether_the_first_try_took_place(
    kind: str, refusal: httpx2.Response, unknown: bool
) -> None:
    """The service looks at the key's history before it says `conflict`, and after it says `unauthorized`."""
    with scripted(kind, DROPPED, refusal) as (petstore, _), pytest.raises(PetstoreError) as caught:
        petstore.orders.place(7)
    assert caught.value.outcome_unknown is unknown


def test_pauses_double_with_full_jitter(kind: str) -> None:
    """A random part, here one half, of 0.5 s, 1 s, 2 s and so on, at most 30 s."""
    with scripted(kind, UNREACHABLE, tries=9, seconds=1_000) as (petstore, script), pytest.raises(NotSent):
        petstore.usage()
    assert script.waits == [0.25, 0.5, 1, 2, 4, 8, 15, 15]


def test_a_503_pauses_for_what_it_says(kind: str) -> None:
    """All callers of the key wait for Retry-After, also when it is a fraction, or there twice, or a date.

    A date is compared with the answer's own, if it has one.
    """
    with scripted(kind, failure(503, "unavailable", retry_after="7"), answer(200, [PET])) as (
        petstore,
        script,
    ):
        petstore.pets.get(7)
    assert script.waits == [7]
    for told, waited in {"Fri, 15 Jan 2027 08:00:40 GMT": 10, "2, 5": 5, "7.5": 7.5}.items():
        answers = failure(503, "unavailable", retry_after=told), answer(200, [PET])
        with scripted(kind, *answers) as (petstore, script):
            petstore.pets.get(7)
        assert script.waits == [waited]
    dates = {"Retry-After": "Fri, 01 Jan 2027 00:00:09 GMT", "Date": "Fri, 01 Jan 2027 00:00:00 GMT"}
    with scripted(kind, answer(503, headers=dates), answer(200, [PET])) as (petstore, script):
        petstore.pets.get(7)
    assert script.waits == [9]


@pytest.mark.parametrize("nonsense", ["-1", "soon", "", "1e9"])
def test_a_retry_after_that_is_none_is_passed_over(kind: str, nonsense: str) -> None:
    """Then the pause doubles as without it."""
    answers = failure(503, "unavailable", retry_after=nonsense), answer(200, [PET])
    with scripted(kind, *answers) as (petstore, script):
        petstore.pets.get(7)
    assert script.waits == [0.25]


def test_seconds_end_a_call_before_a_pause_that_is_too_long(kind: str) -> None:
    """At once, not after the wait; the error says when it would go on."""
    with scripted(kind, failure(503, "unavailable", retry_after="400")) as (petstore, script):
        with pytest.raises(Unavailable) as caught:
            petstore.usage()
        with pytest.raises(Unavailable) as again:
            petstore.with_options(seconds=100).usage()
    assert caught.value.retry_after_seconds == 400
    assert again.value.retry_after_seconds == 400
    assert script.clock.monotonic() == script.times[0]
    assert len(script.requests) == 1


def test_a_creation_in_flight_is_asked_for_again(kind: str) -> None:
    """409 `idempotency_key_in_use`: after a second, for the same answer. Its outcome is unknown."""
    busy = failure(409, "idempotency_key_in_use", retry_after="1")
    with scripted(kind, busy, answer(201, PET)) as (petstore, script):
        create(petstore)
    assert script.waits == [1]
    with scripted(kind, busy, tries=2) as (petstore, _), pytest.raises(IdempotencyKeyInUse) as caught:
        create(petstore)
    assert caught.value.outcome_unknown


@pytest.mark.parametrize(
    "then",
    [
        [failure(503, "unavailable", retry_after="86400")],
        [
            failure(429, "rate_limited", retry_after="80000"),
            DROPPED,
            failure(429, "rate_limited", retry_after="9999"),
        ],
    ],
)
def test_a_creation_is_not_repeated_when_its_key_may_be_forgotten(kind: str, then: list[Any]) -> None:
    """The service keeps an Idempotency-Key for 24 hours, however long the call may take."""
    answers = DROPPED, *then, answer(201, PET)
    with scripted(kind, *answers, seconds=1e6) as (petstore, script), pytest.raises(PetstoreError) as caught:
        create(petstore)
    assert caught.value.outcome_unknown
    assert script.times[-1] - script.times[0] < 24 * 3_600


def test_the_24_hours_go_on_while_the_machine_sleeps() -> None:
    """The monotonic clock may stand then; the other one does not."""
    script = Script(DROPPED, answer(201, PET))
    runtime = dataclasses.replace(script.runtime, wall=lambda: 90_000.0 * len(script.requests))
    transport = httpx2.MockTransport(script.handle)
    petstore = Petstore(ADDRESS, KEY, transport=transport, runtime=runtime)
    with pytest.raises(NoAnswer):
        create(petstore)
    assert len(script.requests) == 1


@pytest.mark.parametrize("key", ["", " ", "two words", "k" * 256, "schlüssel", "line\n"])
def test_what_is_no_idempotency_key_is_refused(kind: str, key: str) -> None:
    """Before anything is sent."""
    with scripted(kind, answer(201, PET)) as (petstore, script):
        with pytest.raises(ValueError, match="1 to 255 visible ASCII"):
            create(petstore, idempotency_key=key)
        with pytest.raises(ValueError, match="1 to 255 visible ASCII"):
            petstore.orders.place(1, idempotency_key=key)
    assert script.requests == []


def test_errors_pass_between_processes() -> None:
    """A pool of processes pickles them. A client can't be pickled, and says so."""
    error = RateLimited("rate_limited", "Wait.", 429, "r-1", 7.0)
    error.outcome_unknown, error.idempotency_key = True, "mine"
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (RateLimited, str(error), vars(error))
    with pytest.raises(TypeError, match="Make one there"):
        pickle.dumps(Petstore(ADDRESS, KEY))


def test_the_log_tells_why_a_call_waits(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """A program that stands still for a minute can be understood."""
    caplog.set_level("INFO", logger="petstore_client")
    with scripted(kind, answer(200, [PET], left=0, reset=40)) as (petstore, _):
        petstore.pets.get(7)
        petstore.pets.get(7)
    assert caplog.messages == ["listPets waited 40.0 s: the limit"]


def test_the_log_tells_each_repetition(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """However short its pause; one line for all that it waited for."""
    caplog.set_level("INFO", logger="petstore_client")
    busy = failure(503, "unavailable", "Try\nagain.", retry_after="7")
    with scripted(kind, httpx2.ReadError("ended"), busy, answer(200, [PET])) as (petstore, _):
        petstore.pets.get(7)
    first, second = caplog.messages
    assert first.startswith("listPets waited 0.2 s: listPets got no answer")
    assert second == "listPets waited 7.0 s: Try\\nagain."


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_body"),
        (401, "unauthorized"),
        (403, "forbidden"),
        (410, "gone"),
        (422, "idempotency_key_reused"),
    ],
)
def test_what_stays_the_same_is_not_repeated(kind: str, status: int, code: str) -> None:
    """The request itself is at fault."""
    with scripted(kind, failure(status, code)) as (petstore, script), pytest.raises(PetstoreError) as caught:
        create(petstore)
    assert len(script.requests) == 1
    assert getattr(caught.value, "code", None) == code


def test_a_proxys_page_is_an_error_of_its_status(kind: str) -> None:
    """502 in HTML: a GET is repeated, and the error says that this was not the service."""
    page = httpx2.Response(502, headers={"content-type": "text/html"}, content=b"<html>Bad gateway</html>")
    with scripted(kind, page, page, answer(200, [PET])) as (petstore, script):
        petstore.pets.get(7)
    assert len(script.requests) == 3
    with scripted(kind, page, tries=1) as (petstore, _), pytest.raises(PetstoreError, match="http_502"):
        petstore.usage()


@pytest.mark.parametrize(
    "content", [b"", b"<html>", b'{"id": 7', b'{"id": "7"}', b"[]", b"null", b"\xff", b'{"id": true}']
)
def test_an_answer_of_success_that_is_not_the_services(kind: str, content: bytes) -> None:
    """Raises UnexpectedAnswer; whether the animal was added is unknown."""
    with (
        scripted(kind, answer(201, content=content)) as (petstore, script),
        pytest.raises(UnexpectedAnswer) as caught,
    ):
        create(petstore)
    assert caught.value.outcome_unknown
    assert len(script.requests) == 1


def test_a_removal_is_204(kind: str) -> None:
    """A network that wants a sign-in answers everything with 200: nothing was removed or cancelled."""
    page = httpx2.Response(200, content=b"<html>Sign in to this network</html>")
    for noun, method in (("pets", "delete"), ("orders", "cancel")):
        with scripted(kind, page) as (petstore, _), pytest.raises(UnexpectedAnswer, match="204") as caught:
            getattr(getattr(petstore, noun), method)(7)
        assert caught.value.outcome_unknown


def test_an_unknown_code_is_treated_by_its_status(kind: str) -> None:
    """Codes may be added; so may statuses."""
    with (
        scripted(kind, failure(401, "key_in_quarantine")) as (petstore, _),
        pytest.raises(Unauthorized) as caught,
    ):
        petstore.usage()
    assert caught.value.code == "key_in_quarantine"
    assert "r-1" in str(caught.value)
    with scripted(kind, failure(500, "new"), tries=1) as (petstore, _), pytest.raises(InternalError):
        petstore.usage()
    with (
        scripted(kind, failure(418, "teapot")) as (petstore, _),
        pytest.raises(PetstoreError, match="418 teapot"),
    ):
        petstore.usage()


def test_a_lost_answer_of_a_reading_has_no_outcome(kind: str) -> None:
    """A GET changes nothing."""
    with scripted(kind, DROPPED, tries=1) as (petstore, _), pytest.raises(NoAnswer) as caught:
        petstore.usage()
    assert caught.value.outcome_unknown is False
