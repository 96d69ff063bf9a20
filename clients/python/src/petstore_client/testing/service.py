"""What every request passes: keys, limits, failures on demand, and the headers of every answer."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from petstore_client.testing.bodies import PATCH_TYPES
from petstore_client.testing.call import Call, Row
from petstore_client.testing.clock import Clock
from petstore_client.testing.messages import STATUS, Answer, NoAnswer, Refusal, Request
from petstore_client.testing.operations import Operations, rows_of
from petstore_client.testing.store import Store
from petstore_client.testing.windows import Key, Window, Windows, binding, limit_headers

_REQUEST_ID = re.compile(r"(?!.*pets_(?:live|test)_)[A-Za-z0-9._:/+=@-]{1,128}")
_NO_KEY = "The API key is missing or invalid; send it as 'Authorization: Bearer <API_KEY>'."
_FAILURES_PER_MINUTE = 600
_BAN_SECONDS = 60
_CARRIED_OUT = {"lost", "slow", "outcome_unknown"}
FAILURES = {*STATUS, *_CARRIED_OUT}


@dataclass
class Failure:
    """One that was ordered; `operation` is the only one that it is for."""

    kind: str
    times: int
    operation: str | None


class Service:
    """The fake without its ways in."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ids = count(1)
        self._address: Windows | None = None  # from the first request without a valid key on
        self.store = Store(clock)
        self._operations = Operations(self.store, clock)
        self.keys: dict[str, Key] = {}
        self.requests: list[Request] = []
        self.failures: list[Failure] = []

    def answer(self, method: str, target: str, pairs: Iterable[tuple[str, str]], content: bytes) -> Answer:
        """The whole answer. Raises NoAnswer where it was ordered."""
        headers: dict[str, str] = {}
        for name, value in pairs:
            headers[name.lower()] = f"{headers[name.lower()]}, {value}" if name.lower() in headers else value
        rows = rows_of(target.partition("?")[0])
        operation = rows[method].name if method in rows else ""
        request = Request(method, target, headers, content, operation)
        with self._lock:
            self.requests.append(request)
            return self._answer(request, rows, self._ordered(operation))

    def _ordered(self, operation: str) -> str:
        for failure in self.failures:
            if failure.times and failure.operation in (None, operation):
                failure.times -= 1
                return failure.kind
        return ""

    def _answer(self, request: Request, rows: dict[str, Row], failure: str) -> Answer:
        if request.method == "OPTIONS" and rows and not failure:
            return self._whole(request, _described(rows), self._windows(None, ""))
        key = self._key(request)
        credential_sent = "authorization" in request.headers
        try:
            answer = self._carry_out(request, rows, key, failure)
        except Refusal as refusal:
            answer = refusal.answer(credential_sent)
            if refusal.code in {"account_suspended", "unauthorized"}:
                key = None
        if failure in {"lost", "slow"}:
            raise NoAnswer(slow=failure == "slow")
        if failure == "outcome_unknown":
            answer = _failed(failure).answer(credential_sent)
        windows = self._windows(key, failure)
        if failure in {"rate_limited", "key_banned"}:
            seconds = binding(windows).reset - self._clock.ms // 1_000
            answer.headers["retry-after"] = str(seconds)
        return self._whole(request, answer, windows)

    def _carry_out(self, request: Request, rows: dict[str, Row], key: Key | None, failure: str) -> Answer:
        """Raises Refusal, in the documented order."""
        allow = _methods(rows)
        if failure in {"rate_limited", "key_banned", "account_suspended"}:
            raise _failed(failure)
        if key is None or failure == "unauthorized":
            self._charge_address()
            raise Refusal("unauthorized", _NO_KEY)
        key.account.take(self._clock.ms, deprecated=request.operation == "getPet")
        if failure and failure not in _CARRIED_OUT:
            raise _failed(failure, allow)
        if not rows:
            raise Refusal(
                "not_found", "There is no such path under /v1; the interface is described at /docs."
            )
        if request.method not in rows:
            raise Refusal("method_not_allowed", f"This path takes {allow}.", allow=allow)
        key.check(rows[request.method].access)
        if "petstore-rehearse" in request.headers:
            raise Refusal("invalid_header", "Petstore-Rehearse works in staging alone. Send none here.")
        return self._operations.carry_out(Call(rows[request.method], request, key))

    def _key(self, request: Request) -> Key | None:
        given = request.headers.get("authorization", "")
        return self.keys.get(given[7:].strip(" ")) if given[:7].lower() == "bearer " else None

    def _charge_address(self) -> None:
        self._address = self._address or Windows(address=_FAILURES_PER_MINUTE)
        if not self._address.take(self._clock.ms):
            seconds = self._address.look(self._clock.ms)[0].reset - self._clock.ms // 1_000
            raise Refusal(
                "rate_limited",
                "Too many requests without a valid API key came from this address;"
                f" try again in {seconds} s.",
                retry_after=str(seconds),
            )

    def _windows(self, key: Key | None, failure: str) -> list[Window]:
        """The limits that an answer shows."""
        if key is None:
            return (self._address or Windows(address=_FAILURES_PER_MINUTE)).look(self._clock.ms)
        windows = key.account.windows.look(self._clock.ms)
        if failure == "rate_limited":
            return [windows[0]._replace(used=windows[0].limit), *windows[1:]]
        if failure == "key_banned":
            reset = self._clock.ms // 1_000 + _BAN_SECONDS
            return [each._replace(used=each.limit, reset=reset) for each in windows]
        return windows

    def _whole(self, request: Request, answer: Answer, windows: list[Window]) -> Answer:
        """The answer with the headers of every answer."""
        own = answer.headers
        if request.operation == "getPet":
            further = self._operations.deprecation(request.path)
            own = own | further
            if "link" in answer.headers:
                own["link"] = f"{further['link']}, {answer.headers['link']}"
        asked_id = request.headers.get("x-request-id", "")
        is_kept = request.method in {"GET", "HEAD"} and answer.status in {200, 304}
        headers = {
            **own,
            **limit_headers(windows, self._clock.ms),
            "x-request-id": asked_id if _REQUEST_ID.fullmatch(asked_id) else f"fake-{next(self._ids)}",
            "cache-control": "private, no-cache" if is_kept else "no-store",
            "x-content-type-options": "nosniff",
        }
        if answer.status not in {204, 304}:
            headers |= {"content-type": "application/json", "content-length": str(len(answer.content))}
        return Answer(answer.status, headers, b"" if request.method == "HEAD" else answer.content)


def _methods(rows: dict[str, Row]) -> str:
    return ", ".join(sorted({*rows, "OPTIONS"}))


def _described(rows: dict[str, Row]) -> Answer:
    """What OPTIONS answers, without a key."""
    patch = {"accept-patch": ", ".join(PATCH_TYPES)} if "PATCH" in rows else {}
    return Answer(204, {"allow": _methods(rows), **patch})


def _failed(code: str, allow: str = "") -> Refusal:
    headers = {"allow": allow} if code == "method_not_allowed" else {}
    return Refusal(code, f"The fake was told to answer {code}.", **headers)
