"""Requests of every kind, in an order that follows from a seed: plain ones, hostile ones, bursts, replays."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field

Headers = list[tuple[str, str | None]]

_METHODS = ("GET",) * 10 + ("HEAD", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "BREW")
_TARGETS = (
    *(
        "/v1/pets",
        "/v1/pets?limit=3",
        "/v1/pets?limit=100",
        "/v1/pets?status=sold",
        "/v1/pets?status=pending",
    ),
    *("/v1/pets?limit=0", "/v1/pets?limit=101", "/v1/pets?limit=+1", "/v1/pets?limit=%ff", "/v1/pets?limit="),
    *("/v1/pets?status=x", "/v1/pets?status=", "/v1/pets?status=sold&status=sold", "/v1/pets?unknown=1"),
    *("/v1/pets?cursor=zzz", "/v1/pets?cursor=", "/v1/pets?cursor=MQ", "/v1/pets?cursor=MQ&status=sold"),
    *("/v1/pets?id=1&id=3", "/v1/pets?id=1,3", "/v1/pets?id=0", "/v1/pets?id=x", "/v1/pets?" + "x" * 9_000),
    *("/v1/pets/1", "/v1/pets/2", "/v1/pets/99999", "/v1/pets/abc", "/v1/pets/%31", "/v1/pets/01"),
    *("/v1/pets/-1", "/v1/pets/9223372036854775807", "/v1/pets/9223372036854775808", "/v1/pets/1/"),
    *("/v1/pets?id=1", "/v1/pets?id=2&limit=1", "/v1/pets?id=1&id=2&id=3&cursor=MQ", "/v1/usage"),
    *("/v1//pets", "/V1/pets", "/v1/pets/", "/v1/PETS", "/v1", "/v1/", "/v1/../v1/pets", "/v1/nothing"),
    *("/", "/docs", "/docs/", "/docs/deprecation", "/openapi.yaml", "/openapi.json", "/static/pages.css"),
    *("/static/../pages.css", "/static/nothing", "/favicon.ico", "/robots.txt", "/nothing", "/é"),
    *("/livez", "/readyz/", "/healthz", "/%68ealthz", "/status", "/metrics/"),
)
_HEADERS: tuple[tuple[str, str | None], ...] = (
    *(("origin", "https://a.example"), ("origin", "https://b.example"), ("origin", "null"), ("host", None)),
    *(
        ("accept", "text/html"),
        ("accept", "application/json"),
        ("accept", "image/png"),
        ("host", "evil.example"),
    ),
    *(("x-forwarded-for", "1.2.3.4"), ("x-forwarded-for", "1.2.3.4, 10.0.0.1"), ("x-forwarded-for", "x")),
    *(("authorization", "Basic x"), ("authorization", "Bearer"), ("authorization", "bearer  x")),
    *(("idempotency-key", ""), ("idempotency-key", "\x7f"), ("idempotency-key", "k" * 256)),
    *(("content-encoding", "gzip"), ("x-big", "y" * 17_000), ("if-none-match", "*"), ("range", "bytes=0-1")),
    *(("content-length", "x"), ("expect", "100-continue"), ("transfer-encoding", "chunked")),
)
_TYPES = (
    *["application/json"] * 12,
    *(
        "text/plain",
        "application/json; charset=utf-8",
        "application/json; charset=latin-1",
        "",
        "APPLICATION/JSON",
    ),
)
_NAMES: tuple[object, ...] = (
    "Rex",
    "",
    " ",
    "é",
    "\x00",
    "\x9b",
    "\u202e",
    "n" * 255,
    "n" * 256,
    5,
    None,
    "a\nb",
    True,
    [],
    {},
)
_CATEGORIES = (1, 0, -1, "x", 1.5, 1.0, 2**63 - 1, 2**63, -(2**63), 1e30, None, True)
_STATUSES = ("available", "pending", "sold", "lost", "SOLD", "", None, 1)
_RAW = (
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff",
    b'{"name": "a", "name": "b", "categoryId": 1}',
    b"\xef\xbb\xbf{}",
    b"1",
)
# The credentials whose limits a burst uses up.
_BURSTS = ("small", "small", "small-2", "days", "none", "wrong")


@dataclass
class Request:
    """One request, and the milliseconds by which the clock moves before it."""

    method: str
    target: str
    headers: Headers
    body: bytes
    client: str
    pause_ms: int


@dataclass
class Requests:
    """An endless list, the same for the same seed, keys and answers."""

    seed: int
    keys: dict[str, str]
    _links: list[str] = field(default_factory=list)
    _burst: tuple[str, int] = ("", 0)
    _past_second_ms: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def learn(self, link: str) -> None:
        """Remember a reference to a next page, to be followed later."""
        self._links = [*self._links[-20:], link]

    def __next__(self) -> Request:
        chance = self._chance
        kind = chance.random()
        if kind < 0.3:
            made = self._creation()
        elif kind < 0.36:
            made = self._preflight()
        else:
            made = self._reading()
        method, target, headers, body = made
        self._authorize(headers)
        return Request(method, target, headers, body, f"10.0.0.{chance.randrange(200)}", self._pause_ms())

    def _reading(self) -> tuple[str, str, Headers, bytes]:
        chance = self._chance
        target = chance.choice(_TARGETS)
        if chance.random() < 0.15 and self._links:
            target = chance.choice(self._links)
        elif chance.random() < 0.25:
            target = f"/v1/pets/{chance.randrange(1, 3_000)}"
        elif chance.random() < 0.3:
            target = f"/v1/pets?limit={chance.randrange(1, 30)}"
        method = "GET" if chance.random() < 0.7 else chance.choice(_METHODS)
        headers = [chance.choice(_HEADERS)] if chance.random() < 0.35 else []
        return method, target, headers, b""

    def _preflight(self) -> tuple[str, str, Headers, bytes]:
        chance = self._chance
        asked = chance.choice(("GET", "POST", "DELETE", ""))
        headers: Headers = [("origin", chance.choice(("https://a.example", "https://b.example")))]
        if asked:
            headers.append(("access-control-request-method", asked))
        if chance.random() < 0.5:
            names = chance.choice(("authorization, content-type", "idempotency-key", "x-other"))
            headers.append(("access-control-request-headers", names))
        return "OPTIONS", chance.choice(("/v1/pets", "/v1/pets/1", "/v1/nothing", "/docs")), headers, b""

    def _creation(self) -> tuple[str, str, Headers, bytes]:
        chance = self._chance
        target = "/v1/pets" if chance.random() < 0.95 else chance.choice(_TARGETS)
        headers: Headers = [("content-type", chance.choice(_TYPES))]
        if chance.random() < 0.4:
            number = chance.randrange(60)
            headers.append(("idempotency-key", f"key-{number}"))
            body = json.dumps({"name": f"Rex {number}", "categoryId": number}).encode()
            return "POST", target, headers, body if chance.random() < 0.9 else self._body()
        if chance.random() < 0.15:
            headers.append(chance.choice(_HEADERS))
        return "POST", target, headers, self._body()

    def _body(self) -> bytes:
        chance = self._chance
        kind = chance.random()
        if kind < 0.02:
            return b"x" * 70_000
        if kind < 0.08:
            return chance.choice(_RAW)
        animal: dict[str, object] = {"name": "Rex", "categoryId": chance.randrange(9)}
        if kind < 0.4:
            values = {
                "name": _NAMES,
                "categoryId": _CATEGORIES,
                "status": _STATUSES,
                "id": (1, None),
                "x": (1,),
            }
            for name in chance.sample(sorted(values), chance.randrange(1, 4)):
                animal[name] = chance.choice(values[name])
        elif kind < 0.45:
            del animal[chance.choice(sorted(animal))]
        return json.dumps(animal).encode()

    def _authorize(self, headers: Headers) -> None:
        """Mostly the large key; a burst now and then uses one other credential up."""
        name, left = self._burst
        if not left and self._chance.random() < 0.0015:
            self._burst = name, left = self._chance.choice(_BURSTS), 300
        if left:
            self._burst = name, left - 1
        else:
            name = "large" if self._chance.random() < 0.85 else self._chance.choice(sorted(self.keys))
        if self.keys[name]:
            headers.append(("authorization", f"Bearer {self.keys[name]}"))

    def _pause_ms(self) -> int:
        """Often none, and often one that ends where windows, graces and bans do: on a whole second."""
        kind = self._chance.random()
        in_burst = self._burst[1] > 0
        pause = 0
        if kind < 0.0003:
            pause = 11 * 3_600_000
        elif kind < 0.004:
            pause = 2_000 if in_burst else self._chance.randrange(60_000, 400_000)
        elif kind < 0.02:
            pause = self._chance.choice(
                (2_000, 2_000, 2_000, 60_000) if in_burst else (1_000, 59_000, 300_000)
            )
        elif kind < 0.08:
            pause = 1_000 - self._past_second_ms
        elif kind < 0.12:
            pause = self._chance.randrange(10)
        elif kind < 0.13:
            pause = self._chance.randrange(900)
        self._past_second_ms = (self._past_second_ms + pause) % 1_000
        return pause
