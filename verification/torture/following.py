"""Clients that follow `GET /v1/events`: what they have of animals and orders, and what may not be told."""

from __future__ import annotations

import http.client
import json
import random
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.cluster import Client, next_of
from tests.support.waiting import pause

Event = dict[str, Any]
Objects = dict[int, dict[str, Any]]
_AFTER = re.compile(r'[?&]after=([^&>]+)>; rel="next"$')
_LOOK_AGAIN_SECONDS = 0.03
_END_SECONDS = 90.0


class Mirror:
    """Animals and orders as events tell of them, by subject and id, from the first event or from a list on.

    `faults` are events that do not fit what it holds; of those before a list is known anything may come.
    """

    def __init__(self, listed: Sequence[Mapping[str, Any]] | None = None) -> None:
        self.objects: dict[str, Objects] = {"pet": {}, "order": {}}
        self.objects["pet"] |= {pet["id"]: dict(pet) for pet in listed or ()}
        self.faults: list[str] = []
        self._is_whole = listed is None
        self._created: set[tuple[str, int]] = set()

    def apply(self, event: Event) -> None:
        """The next event."""
        subject, _, action = event["type"].partition(".")
        if subject not in self.objects:
            return
        objects, data = self.objects[subject], dict(event["data"])
        previous = data.pop("previous", {})
        number = data["id"]
        known = objects.get(number)
        if action == "created":
            self._expect((subject, number) not in self._created, event, "is created again")
            self._created.add((subject, number))
            objects[number] = data
            return
        self._expect(known is not None, event, "is about what the mirror lacks")
        if known is None:
            return
        was = {name: known.get(name) for name in previous}
        self._expect(was == previous, event, f"was {was} here")
        if action == "deleted":
            self._expect(known == {"id": number, **previous}, event, f"was {known} here")
            del objects[number]
            return
        objects[number] = {name: value for name, value in (known | data).items() if value is not None}

    def _expect(self, holds: bool, event: Event, what: str) -> None:
        if self._is_whole and not holds:
            self.faults.append(f"{event['type']} {event['data']['id']} {what}: {event}")


class Gone(Exception):
    """410: the store does not continue the follower's bookmark."""


class Follower:
    """One client, which goes on from its last bookmark, at one of `ports` for each request.

    `seen` are its events in their order. One that `forgets` loses some answers and stops at times, as a
    program that dies before it has stored what it read; `pages` are the limits of its requests.
    """

    def __init__(
        self,
        name: str,
        ports: Sequence[int],
        key: str,
        chance: random.Random,
        *,
        types: str = "",
        pages: tuple[int, int] = (100, 100),
        forgets: bool = False,
    ) -> None:
        self.name = name
        self.key = key
        self.seen: list[Event] = []
        self.faults: list[str] = []
        self.mirror = Mirror()
        self.bookmark = ""
        self.lost = 0
        self._types = f"&type={types}" if types else ""
        self._pages = pages
        self._forgets = forgets
        self._chance = chance
        self.ids: set[str] = set()
        self.told: set[tuple[str, int]] = set()
        self.move(ports)

    def move(self, ports: Sequence[int]) -> None:
        """Go on at these ports."""
        self._clients = [Client(port, self.key) for port in ports]

    def step(self, wait_seconds: int = 0) -> bool:
        """One request; whether the feed says that this is its end. Raises Gone."""
        after = f"&after={self.bookmark}" if self.bookmark else ""
        limit = self._chance.randint(*self._pages)
        answer = self._ask(f"/v1/events?limit={limit}&wait={wait_seconds}{self._types}{after}")
        if answer is None:
            return False
        if self._forgets and self._chance.random() < 0.15:
            pause(self._chance.uniform(0, 0.1))
            return False
        page = json.loads(answer.body)
        if len(page) > limit:
            self.faults.append(f"{len(page)} events where {limit} were asked for")
        for event in page:
            self._take(event)
        found = _AFTER.search(answer.headers["link"])
        assert found is not None, answer.headers["link"]
        self.bookmark = found[1]
        return not page and "events-behind" not in answer.headers

    def follow(self, over: threading.Event) -> None:
        """Follow until it is over."""
        try:
            while not over.is_set():
                self.step(self._chance.choice((0, 1, 2)))
        except Exception as error:
            self.faults.append(f"{type(error).__name__}: {error}")

    def finish(self, awaited: tuple[str, int]) -> None:
        """Go on until the last change, an update of that object, was told and the feed is at its end."""
        ends = time.monotonic() + _END_SECONDS
        while not (self.step() and awaited in self.told):
            if time.monotonic() > ends:
                self.faults.append(f"{awaited} was not told until {self.bookmark}")
                return

    def start_anew(self) -> None:
        """The recipe: a bookmark of now, the list, and the events from there on."""
        self.bookmark = "now"
        while self.bookmark == "now":
            self.step()
        self.mirror = Mirror(self.list("/v1/pets?limit=100"))

    def list(self, target: str) -> list[dict[str, Any]]:
        """All of a list, page by page, however often a page has to be asked for."""
        found: list[dict[str, Any]] = []
        while True:
            answer = self._ask(target)
            if answer is None:
                continue
            found += json.loads(answer.body)
            if not (target := next_of(answer)):
                return found

    def _ask(self, target: str) -> Any:
        """The answer; None where there is none worth its name."""
        try:
            answer = self._chance.choice(self._clients)("GET", target)
        except (OSError, http.client.HTTPException):
            self.lost += 1
            pause(_LOOK_AGAIN_SECONDS)
            return None
        if answer.status == 200:
            return answer
        if answer.status == 410:
            raise Gone(answer.body.decode())
        if answer.status not in (503, 404):  # 404: a program that knew no events
            self.faults.append(f"{target}: {answer.status} {answer.body!r}")
        self.lost += 1
        pause(_LOOK_AGAIN_SECONDS)
        return None

    def _take(self, event: Event) -> None:
        if event["id"] in self.ids:
            self.faults.append(f"told twice: {event}")
        self.ids.add(event["id"])
        self.seen.append(event)
        self.told.add((event["type"], event["data"].get("id", 0)))
        self.mirror.apply(event)


def about(events: Sequence[Event], subject: str, number: int) -> str:
    """The last events about an object, a line for each."""
    last = [event for event in events if event["type"].startswith(subject) and event["data"]["id"] == number]
    return "".join(f"\n    {event}" for event in last[-5:])


def differences(follower: Follower, subject: str, there: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many animals a mirror shows otherwise than a list of the service, and the first of them."""
    held, shown = follower.mirror.objects[subject], {each["id"]: dict(each) for each in there}
    found = [number for number in held | shown if held.get(number) != shown.get(number)]
    if not found:
        return []
    first = min(found)
    return [
        f"{follower.name}: {len(found)} differences; {subject} {first} is {shown.get(first)}, and here"
        f" {held.get(first)}{about(follower.seen, subject, first)}"
    ]


def deviations(one: Follower, other: Follower, subject: str = "") -> list[str]:
    """The first event of a subject where two followers were told different sequences."""
    a, b = ([event for event in each.seen if event["type"].startswith(subject)] for each in (one, other))
    if a == b:
        return []
    at = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return [
        f"{one.name} and {other.name} were told {len(a)} and {len(b)} events, and differ at {at}:"
        f"\n    {a[at : at + 2]}\n    {b[at : at + 2]}"
    ]
