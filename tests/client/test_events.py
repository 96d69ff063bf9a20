"""Events and followers, by both clients, on the real service or a script, at a steered time."""

from __future__ import annotations

import json
import math
import threading
from datetime import datetime
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from petstore_client import Event, EventPage, EventsGone, Petstore, Unauthorized, UnexpectedAnswer

from petstore.core.pets import NewPet
from tests.client.kit import ADDRESS, DROPPED, KEY, Scripted, Served, answer, failure
from tests.support.journal import ACTOR


def told(*numbers: int, after: int, **headers: str) -> httpx2.Response:
    """A page of these events, and the bookmark after it."""
    events = [
        {"id": f"evt_{number}", "type": "pet.created", "timestamp": "2026-11-22T21:45:42.310Z", "data": {}}
        for number in numbers
    ]
    link = f'</v1/events?limit=100&after=b-{after}&wait=60>; rel="next"'
    return answer(200, events, {"Link": link} | {name.replace("_", "-"): headers[name] for name in headers})


def asked(request: httpx2.Request) -> dict[str, str]:
    return dict(request.url.params)


def test_a_page_has_what_changed_behind_a_bookmark(petstore: Petstore) -> None:
    """A page has events in order, with former values, of the types asked for, and a bookmark to go on."""
    begin = petstore.events.list(after="now")
    assert (list(begin), begin.is_behind, begin.retry_after_seconds) == ([], False, None)
    pet = petstore.pets.create(name="Rex", category_id=1)
    petstore.pets.update(pet.id, status="sold")
    petstore.pets.delete(pet.id)
    page = petstore.events.list(after=begin.after)
    assert [event.type for event in page] == ["pet.created", "pet.updated", "pet.deleted"]
    assert page[0].data == {"id": pet.id, "name": "Rex", "categoryId": 1, "status": "available"}
    assert page[1].data == {"id": pet.id, "status": "sold", "previous": {"status": "available"}}
    assert page[0].timestamp.tzinfo
    assert petstore.events.list(after=page.after) == EventPage((), page.after)
    first = petstore.events.list(after=begin.after, limit=1)
    assert (list(first), first.is_behind) == ([page[0]], True)
    for types in ("pet.deleted", ["category.*", "pet.deleted"]):
        assert list(petstore.events.list(after=begin.after, types=types)) == [page[2]]


def test_a_bookmark_from_before_a_restore_is_gone(service: Served, petstore: Petstore) -> None:
    """A list and a follower raise EventsGone, whose message says what to do."""
    bookmark = petstore.events.list(after="now").after
    service.run(service.shop.store.events.note_restore(ACTOR))
    with pytest.raises(EventsGone, match="after=now"):
        petstore.events.list(after=bookmark)
    with pytest.raises(EventsGone):
        next(petstore.events.follow(after=bookmark))


def test_unknown_members_of_an_event_are_passed_over(scripted: Scripted) -> None:
    """A later service may send more; unknown types are passed on."""
    page = told(after=1)
    event = {"id": "evt_1", "type": "toy.lost", "timestamp": "2026-11-22T21:45:42Z", "data": {}, "more": 1}
    petstore, _ = scripted(httpx2.Response(200, headers=page.headers, content=json.dumps([event])))
    moment = datetime.fromisoformat("2026-11-22T21:45:42Z")
    assert list(petstore.events.list()) == [Event("evt_1", "toy.lost", moment, {})]


@pytest.mark.parametrize("headers", [{}, {"Link": '</v1/events?limit=20>; rel="next"'}])
def test_events_without_a_bookmark_are_no_answer(scripted: Scripted, headers: dict[str, str]) -> None:
    """Nobody could go on from them."""
    petstore, _ = scripted(answer(200, [], headers))
    with pytest.raises(UnexpectedAnswer, match="`after`"):
        petstore.events.list()


def test_a_follower_goes_from_page_to_page(scripted: Scripted) -> None:
    """`now` becomes a bookmark at once, since a lost connection would lose events. Its requests wait as long
    as it says, and ask for whole pages of its types."""
    petstore, script = scripted(told(after=1), told(after=2), told(1, 2, after=4), told(3, after=5))
    follow = petstore.events.follow(types=["pet.*"], wait=90)
    assert [next(follow).id for _ in range(3)] == ["evt_1", "evt_2", "evt_3"]
    assert [asked(request) for request in script.requests] == [
        {"limit": "100", "type": "pet.*", "after": "now"},
        *({"limit": "100", "type": "pet.*", "after": f"b-{at}", "wait": "90"} for at in (1, 2, 4)),
    ]


def test_a_followers_bookmark_is_behind_pages_that_were_taken_whole(scripted: Scripted) -> None:
    """A program that goes on from it misses nothing; until a page is taken whole it gets its events again."""
    petstore, _ = scripted(told(1, 2, 3, after=4), told(after=9), told(4, after=11))
    follow = petstore.events.follow(after="b-0")
    seen = [(next(follow).id, follow.after) for _ in range(4)]
    assert seen == [("evt_1", "b-0"), ("evt_2", "b-0"), ("evt_3", "b-4"), ("evt_4", "b-11")]


def test_there_is_a_bookmark_behind_the_first_event(scripted: Scripted) -> None:
    """A follower from the beginning asks for one event first: there is no bookmark of the beginning."""
    petstore, script = scripted(told(1, after=2), told(2, 3, after=4))
    follow = petstore.events.follow(after=None)
    seen = [("", follow.after), *((next(follow).id, follow.after) for _ in range(2))]
    assert seen == [("", None), ("evt_1", "b-2"), ("evt_2", "b-2")]
    assert [asked(request)["limit"] for request in script.requests] == ["1", "100"]


def test_a_follower_outlives_whatever_passes(scripted: Scripted) -> None:
    """Lost connections, failures and limits, however many and however long, from the bookmark that it had."""
    faults = [DROPPED] * 20 + [failure(503, "unavailable")] * 20 + [failure(500, "internal_error")] * 5
    refusal = failure(429, "rate_limited", retry_after="4000")
    petstore, script = scripted(*faults, refusal, told(1, after=1))
    follow = petstore.with_options(tries=1, seconds=0).events.follow(after="b-0")
    assert next(follow).id == "evt_1"
    assert {asked(request)["after"] for request in script.requests} == {"b-0"}
    assert script.waits[-1] == 4000


def test_a_follower_raises_what_does_not_pass(scripted: Scripted) -> None:
    """It goes on where it was, should the program ask again."""
    petstore, _ = scripted(told(1, after=1), failure(401, "unauthorized"), told(2, after=2))
    follow = petstore.events.follow(after="b-0")
    assert next(follow).id == "evt_1"
    with pytest.raises(Unauthorized):
        next(follow)
    assert next(follow).id == "evt_2"


@pytest.mark.parametrize(
    ("page", "pause"),
    [
        pytest.param(told(after=1, Retry_After="5"), 5, id="no waiting place"),
        pytest.param(told(after=1, Events_Behind="true"), 0, id="behind"),
        pytest.param(told(after=1), 1, id="a wait that was cut short"),
        pytest.param(told(1, after=1), 0, id="events"),
    ],
)
def test_a_follower_pauses_as_the_answer_says(scripted: Scripted, page: httpx2.Response, pause: int) -> None:
    """A follower asks at once after events, or when there are more, else after the answer's pause."""
    petstore, script = scripted(page, told(2, after=2))
    follow = petstore.events.follow(after="b-0")
    while next(follow).id != "evt_2":
        pass
    assert script.waits == [pause]


def test_a_follower_leaves_half_of_the_day_to_others(
    service: Served, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its half when it needs it, then what is left is spread until the reset: always half of the limit
    is there, in proportion to the rest of the day, and no event waits for longer than its share."""
    key = service.open_account(f"followed-{kind}", "enterprise", per_minute=1_000, per_day=200)
    midnight = (service.clock.ms // 86_400_000 + 1) * 86_400
    service.clock.set_seconds(midnight)
    real = service.answer
    left: list[tuple[float, int]] = []  # seconds until the reset, and requests that remain

    async def answered(request: httpx2.Request) -> httpx2.Response:
        if midnight + 86_400 - service.clock.monotonic() < 60:
            await service.shop.store.pets.add(NewPet("Rex", 1), ACTOR)
        response = await real(request)
        assert response.status_code == 200
        remaining = int(response.headers["RateLimit"].partition('"day";r=')[2].partition(";")[0])
        left.append((midnight + 86_400 - service.clock.monotonic(), remaining))
        return response

    bookmark = service.client("sync").events.list(after="now").after
    monkeypatch.setattr(service, "answer", answered)
    follow = service.client(kind, key).events.follow(after=bookmark, wait=0)
    assert next(follow).data["name"] == "Rex"
    assert all(remaining >= math.floor(100 * seconds / 86_400) for seconds, remaining in left)
    assert left[99][0] > 86_000, "it does not use its half when it needs it"
    pauses = [before[0] - after[0] for before, after in pairwise(left)]
    assert max(pauses) <= 86_400 / 100 + 2


def test_a_waiting_call_holds_up_no_other_call() -> None:
    """The first call of a process too, on whose answer others would wait to learn the limits."""
    waits, ends = threading.Event(), threading.Event()

    def handle(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/events"):
            waits.set()
            assert ends.wait(20)
            return told(1, after=1)
        return answer(200, [])

    petstore = Petstore(ADDRESS, KEY, transport=httpx2.MockTransport(handle), seconds=5)
    taken: list[Any] = []
    thread = threading.Thread(target=lambda: taken.append(next(petstore.events.follow(after="b-0"))))
    thread.start()
    assert waits.wait(20)
    try:
        assert [petstore.categories.list() for _ in range(3)] == [[], [], []]
    finally:
        ends.set()
        thread.join(20)
    assert [event.id for event in taken] == ["evt_1"]
