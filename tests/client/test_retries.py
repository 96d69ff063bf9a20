"""What is repeated, when, and what the error says about the outcome; on scripts of answers."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import httpx2
import pytest
from petstore_client import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    IdempotencyKeyInUse,
    IdempotencyKeyReused,
    InternalError,
    InvalidBody,
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

from tests.client.kit import ADDRESS, DROPPED, KEY, PET, Script, Scripted, answer, failure

HUNG_UP = httpx2.RemoteProtocolError("Server disconnected without sending a response.")
UNREACHABLE = httpx2.ConnectError("nobody listens")
UNKNOWN = failure(503, "outcome_unknown")
# What 1.1.0 and its nginx say instead.
KEPT = failure(503, "unavailable", "The store failed; whether this write was kept is unknown. Look first.")
ABSENT = failure(404, "not_found")
BUSY = failure(409, "idempotency_key_in_use", retry_after="1")
BAD_GATEWAY = httpx2.Response(502, headers={"content-type": "text/html"}, content=b"<html>No</html>")
SIGN_IN = httpx2.Response(200, content=b"<html>Sign in to this network</html>")
CARRIED_OUT = failure(503, "unavailable", "Out of reach. Whether a write was carried out is unknown: retry.")


def create(petstore: Any, **more: Any) -> Any:
    return petstore.pets.create(name="Rex", category_id=1, **more)


CALLS: dict[str, Callable[[Any], Any]] = {
    "create": create,
    "delete": lambda petstore: petstore.pets.delete(7),
    "cancel": lambda petstore: petstore.orders.cancel(7),
    "place": lambda petstore: petstore.orders.place(7),
    "delete seen": lambda petstore: petstore.pets.delete(7, if_match='"abc"'),
    "usage": lambda petstore: petstore.usage(),
    "read": lambda petstore: petstore.pets.get(7),
    "change seen": lambda petstore: petstore.pets.update(7, name="Max", if_match='"abc"'),
    "change any": lambda petstore: petstore.pets.update(7, name="Max", if_match="*"),
}


class Failed(NamedTuple):
    """A call that fails: after these answers, with this error, whose outcome is `unknown`, and so many
    requests."""

    call: str
    answers: list[httpx2.Response | Exception]
    error: type[PetstoreError]
    unknown: bool
    requests: int = 1
    tries: int = 5
    says: str | None = None


FAILED = {
    "a removal finds nothing, and none was sent before": Failed(
        "delete", [UNREACHABLE, ABSENT], NotFound, False, 2
    ),
    "a cancellation of no order is repeated": Failed("cancel", [DROPPED, ABSENT], NotFound, False, 2),
    # It may have been changed, and removed by somebody since. `*` is any state.
    "a change of a seen animal finds nothing": Failed("change seen", [DROPPED, ABSENT], NotFound, True, 2),
    "a change of any state": Failed("change any", [DROPPED], NoAnswer, True),
    # The service reads the key's history before it says `conflict`, and after it says `unauthorized`.
    "conflict after a lost try": Failed("place", [DROPPED, failure(409, "conflict")], Conflict, False, 2),
    "unauthorized after a lost try": Failed(
        "place", [DROPPED, failure(401, "unauthorized")], Unauthorized, True, 2
    ),
    "a creation stays in flight": Failed("create", [BUSY], IdempotencyKeyInUse, True, 2, tries=2),
    "a reading changes nothing": Failed("usage", [DROPPED], NoAnswer, False, tries=1),
    # A network that wants a sign-in answers everything with 200: nothing was removed or cancelled.
    "a removal is 204": Failed("delete", [SIGN_IN], UnexpectedAnswer, True, says="204"),
    "a cancellation is 204": Failed("cancel", [SIGN_IN], UnexpectedAnswer, True, says="204"),
    "a proxy's page": Failed("usage", [BAD_GATEWAY], ApiError, False, tries=1, says="http_502"),
    "a new code of a known status": Failed(
        "usage", [failure(500, "new")], InternalError, False, tries=1, says="500 new.*r-1"
    ),
    "a new status": Failed("usage", [failure(418, "teapot")], ApiError, False, says="418 teapot"),
    # The request itself is at fault.
    "invalid body": Failed("create", [failure(400, "invalid_body")], InvalidBody, False),
    "no key": Failed("create", [failure(401, "unauthorized")], Unauthorized, False),
    "too low a level": Failed("create", [failure(403, "forbidden")], Forbidden, False),
    "removed operation": Failed("create", [failure(410, "gone")], Gone, False),
    "a key used twice": Failed(
        "create", [failure(422, "idempotency_key_reused")], IdempotencyKeyReused, False
    ),
    **{
        f"created {content!r}": Failed("create", [answer(201, content=content)], UnexpectedAnswer, True)
        for content in (b"", b"<html>", b'{"id": 7', b'{"id": "7"}', b"[]", b"null", b"\xff", b'{"id": true}')
    },
}


@pytest.mark.parametrize("name", FAILED)
def test_an_error_says_whether_anything_may_have_changed(scripted: Scripted, name: str) -> None:
    """A call is repeated only where that can help."""
    row = FAILED[name]
    petstore, script = scripted(*row.answers, tries=row.tries)
    with pytest.raises(row.error, match=row.says) as caught:
        CALLS[row.call](petstore)
    assert caught.value.outcome_unknown is row.unknown
    assert len(script.requests) == row.requests


def unavailable(retry_after: str, **date: str) -> httpx2.Response:
    return failure(503, "unavailable", retry_after=retry_after, **date)


def used_up(date: str) -> httpx2.Response:
    """An answer whose older headers say that all is used up until the beginning of 2027."""
    headers = {"X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1798761600"}
    return httpx2.Response(200, headers={**headers, "Date": date}, content=b"[]")


# Two calls get these answers, the last one again and again: the pause before the second request. The clock of
# the machine says January 15, 2027, 08:00:30.
PAUSES = {
    "seconds": (unavailable("7"), 7),
    "a fraction": (unavailable("7.5"), 7.5),
    "twice": (unavailable("2, 5"), 5),
    "a date": (unavailable("Fri, 15 Jan 2027 08:00:40 GMT"), 10),
    "a date and the answer's own": (
        unavailable("Fri, 01 Jan 2027 00:00:09 GMT", date="Fri, 01 Jan 2027 00:00:00 GMT"),
        9,
    ),
    # Then the pause doubles as without it.
    **{f"nonsense {text!r}": (unavailable(text), 0.25) for text in ("-1", "soon", "", "1e9")},
    # The older headers are read by the date of their answer; a wait is a day at most.
    "ten seconds of a window": (used_up("Thu, 31 Dec 2026 23:59:50 GMT"), 10),
    "a month": (used_up("Tue, 01 Dec 2026 00:00:00 GMT"), 86_400),
    "a window that has ended": (used_up("Sat, 02 Jan 2027 00:00:00 GMT"), 0),
    "the last date": (used_up("Fri, 31 Dec 9999 23:59:59 GMT"), 0),
    "no date": (used_up("soon"), 0),
    "a window without end": (answer(200, [], left=0, reset=999_999_999), 86_400),
}


@pytest.mark.parametrize("name", PAUSES)
def test_a_pause_is_as_long_as_the_service_says(scripted: Scripted, name: str) -> None:
    """All callers of the key wait for Retry-After, and for the end of a window that is used up."""
    first, pause = PAUSES[name]
    petstore, script = scripted(first, answer(200, []), seconds=1e6)
    for _ in range(2):
        petstore.categories.list()
    assert script.waits[0] == pause


REPEATED: dict[str, tuple[str, list[Any]]] = {
    "a creation in flight": ("create", [BUSY, answer(201, PET)]),
    # Its identifier is never used again, so the 404 of a repetition says that it is gone.
    "a removal": ("delete", [DROPPED, ABSENT]),
    "a removal of what was seen": ("delete seen", [DROPPED, ABSENT]),
    # A cancelled order stays cancelled.
    "a cancellation": ("cancel", [DROPPED, answer(204, content=b"")]),
    "a reading after a proxy's page": ("read", [BAD_GATEWAY, answer(200, [PET])]),
    # It takes place only in that state, so it can't undo what somebody else did.
    "a change of a seen state": ("change seen", [DROPPED, answer(200, PET)]),
}


@pytest.mark.parametrize("name", REPEATED)
def test_what_is_safe_is_repeated(scripted: Scripted, name: str) -> None:
    """A safe call repeats in the same words and has its result; one in flight after the second asked for."""
    call, answers = REPEATED[name]
    petstore, script = scripted(*answers)
    CALLS[call](petstore)
    first, again = script.requests
    assert (first.content, first.headers) == (again.content, again.headers)
    assert script.waits == [1 if answers[0] is BUSY else 0.25]


def test_a_creation_repeats_under_one_key_of_its_own(scripted: Scripted) -> None:
    """A creation keeps its key after lost answers and 503 alike, so that one animal is added."""
    lost: list[Any] = [DROPPED, httpx2.ReadTimeout("silence"), UNKNOWN]
    petstore, script = scripted(*lost, answer(201, PET))
    assert create(petstore).id == 7
    keys = {request.headers["idempotency-key"] for request in script.requests}
    assert len(script.requests) == 4
    assert len(keys) == 1
    assert len(keys.pop()) == 36


def test_two_creations_have_two_keys_but_a_given_one_is_sent(scripted: Scripted) -> None:
    """A retry is recognised, a second creation is none."""
    petstore, script = scripted(answer(201, PET))
    for given in (None, None, "mine"):
        create(petstore, idempotency_key=given)
    keys = [request.headers["idempotency-key"] for request in script.requests]
    assert len(set(keys)) == 3
    assert keys[2] == "mine"


@pytest.mark.parametrize(
    "lost", [DROPPED, HUNG_UP, UNKNOWN, KEPT, CARRIED_OUT, answer(502, content=b"<html>")]
)
def test_a_change_of_unknown_outcome_is_not_repeated(scripted: Scripted, lost: Any) -> None:
    """A PATCH might undo what somebody else changed meanwhile. The error says that the outcome is unknown."""
    petstore, script = scripted(lost)
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
def test_a_change_that_surely_did_not_happen_is_repeated(scripted: Scripted, refused: Any) -> None:
    """Nothing was sent, or the service says that it changed nothing."""
    petstore, script = scripted(refused, answer(200, PET))
    assert petstore.pets.update(7, name="Rex").id == 7
    assert len(script.requests) == 2


def test_the_last_error_is_raised_when_the_tries_are_used_up(scripted: Scripted) -> None:
    """It tells the address, the key by which the creation may be repeated, and that its outcome is
    unknown."""
    petstore, script = scripted(DROPPED, UNREACHABLE, tries=2)
    with pytest.raises(NotSent, match=rf"from {ADDRESS}/v1.*nobody listens") as caught:
        create(petstore)
    assert caught.value.outcome_unknown
    assert caught.value.idempotency_key == script.requests[0].headers["idempotency-key"]
    with pytest.raises(NotSent) as unsent:
        create(petstore)
    assert unsent.value.outcome_unknown is False
    assert len(script.requests) == 4


def test_pauses_double_with_full_jitter(scripted: Scripted) -> None:
    """A random part, here one half, of 0.5 s, 1 s, 2 s and so on, at most 30 s."""
    petstore, script = scripted(UNREACHABLE, tries=9, seconds=1_000)
    with pytest.raises(NotSent):
        petstore.usage()
    assert script.waits == [0.25, 0.5, 1, 2, 4, 8, 15, 15]


def test_seconds_end_a_call_before_a_pause_that_is_too_long(scripted: Scripted) -> None:
    """A call ends at once before a pause beyond its seconds; the error says when it would go on."""
    petstore, script = scripted(failure(503, "unavailable", retry_after="400"))
    with pytest.raises(Unavailable) as caught:
        petstore.usage()
    with pytest.raises(Unavailable) as again:
        petstore.with_options(seconds=100).usage()
    assert caught.value.retry_after_seconds == 400
    assert again.value.retry_after_seconds == 400
    assert script.clock.monotonic() == script.times[0]
    assert len(script.requests) == 1


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
def test_a_creation_is_not_repeated_when_its_key_may_be_forgotten(
    scripted: Scripted, then: list[Any]
) -> None:
    """The service keeps an Idempotency-Key for 24 hours, however long the call may take."""
    answers = DROPPED, *then, answer(201, PET)
    petstore, script = scripted(*answers, seconds=1e6)
    with pytest.raises(PetstoreError) as caught:
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
def test_what_is_no_idempotency_key_is_refused_before_it_is_sent(scripted: Scripted, key: str) -> None:
    """The caller learns it where the mistake is."""
    petstore, script = scripted(answer(201, PET))
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


def test_the_log_tells_each_repetition(scripted: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    """However short its pause; one line for all that it waited for."""
    caplog.set_level("INFO", logger="petstore_client")
    busy = failure(503, "unavailable", "Try\nagain.", retry_after="7")
    petstore, _ = scripted(httpx2.ReadError("ended"), busy, answer(200, [PET]))
    petstore.pets.get(7)
    first, second = caplog.messages
    assert first.startswith("listPets waited 0.2 s: listPets got no answer")
    assert second == "listPets waited 7.0 s: Try\\nagain."
