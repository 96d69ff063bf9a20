"""What every answer under /v1 owes its client, whatever was asked."""

from __future__ import annotations

import re
from email.utils import formatdate
from typing import TYPE_CHECKING

from petstore.core.errors import BY_CODE
from petstore.core.limits.plans import WINDOWS
from tests.support import contract
from tests.support.measuring import untraced

if TYPE_CHECKING:
    from tests.support.service import Answer

_WINDOW = re.compile(r'"([a-z]+)";q=([0-9]+);w=([0-9]+)')
_STANDING = re.compile(r'"([a-z]+)";r=([0-9]+);t=([0-9]+)')
_BAN_MAX_SECONDS = 3_601  # an hour, up to the whole second
LIMIT_HEADERS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset")


def is_interface(path: bytes) -> bool:
    """Whether a raw path is one of the interface and not of the site around it."""
    return path == b"/v1" or path.startswith(b"/v1/")


def check_limits(answer: Answer, now_ms: int) -> None:
    """Both forms are there and say the same, by the time in Date: the X-RateLimit trio is the binding
    window."""
    assert answer.headers["date"] == formatdate(now_ms // 1_000, usegmt=True)
    limit, remaining, reset = (int(answer.headers[name]) for name in LIMIT_HEADERS)
    policies = _WINDOW.findall(answer.headers["ratelimit-policy"])
    standings = _STANDING.findall(answer.headers["ratelimit"])
    assert [row[0] for row in policies] == [row[0] for row in standings]
    assert [row[0] for row in policies] in ([kind.name for kind in WINDOWS], ["address"])
    windows = [
        (int(r), -(now_ms // 1_000 + int(t)), int(q), int(w), int(t))
        for (_, q, w), (_, r, t) in zip(policies, standings, strict=True)
    ]
    for r, _, q, w, t in windows:
        assert 0 <= r <= q
        assert 0 < t <= w or (answer.status == 429 and t <= _BAN_MAX_SECONDS)
    binding = min(windows)
    assert (limit, remaining) == (binding[2], binding[0])
    assert 0 <= reset * 1_000 - now_ms - (binding[4] - 1) * 1_000 <= 1_000


def check_error(answer: Answer) -> None:
    """Exactly the Error body, with a code of the catalogue that belongs to the status."""
    body = answer.json()
    assert set(body) == {"code", "message", "status"}
    assert body["status"] == answer.status == BY_CODE[body["code"]].status
    assert isinstance(body["message"], str)
    assert body["message"]


@untraced
def check_answer(method: str, target: bytes, answer: Answer, now_ms: int | None) -> None:
    """A whole answer. None as time: the counters go by another clock."""
    names = [name for name, _ in answer.raw_headers]
    assert len(names) == len(set(names)), "a header stands twice"
    assert not {"server", "transfer-encoding", "set-cookie"} & set(names)
    headers = answer.headers
    is_kept = method in ("GET", "HEAD") and answer.status in (200, 304)
    assert headers["cache-control"] == ("private, no-cache" if is_kept else "no-store")
    assert headers["x-content-type-options"] == "nosniff"
    assert re.fullmatch(r"[A-Za-z0-9._:/+=@-]{1,128}", headers["x-request-id"])
    if now_ms is not None:
        check_limits(answer, now_ms)
    in_use = answer.status == 409 and answer.json()["code"] == "idempotency_key_in_use"
    if not target.startswith(b"/v1/events"):  # also where there is no place to wait
        assert ("retry-after" in headers) == (answer.status in (429, 503) or in_use)
    assert ("www-authenticate" in headers) == (answer.status == 401)
    assert ("allow" in headers) == (answer.status == 405 or (method, answer.status) == ("OPTIONS", 204))
    if answer.status == 429 and not target.endswith(b"/test"):  # of a webhook, which has a limit of its own
        assert headers["x-ratelimit-remaining"] == "0"
    _check_links(target.partition(b"?")[0], method, answer)
    _check_content(method, answer)
    response = contract.response_of(target.partition(b"?")[0], method, answer.status)
    if response is not None:
        contract.check_headers(response, headers)
        if answer.body:
            contract.check_body(response, answer.json(), f"{method} {answer.status}")


def _check_links(path: bytes, method: str, answer: Answer) -> None:
    """Every error leads to its explanation, every answer of a deprecated operation to its replacement."""
    links = re.findall(r'<([^<>]+)>; rel="([a-z-]+)"', answer.headers.get("link", ""))
    relations = {relation: target for target, relation in links}
    assert ("help" in relations) == (answer.status >= 400)
    if answer.status >= 400 and answer.body:
        assert relations["help"].endswith(f"/docs/errors#{answer.code}")
    if contract.operation_of(path, method).get("deprecated"):
        assert {"deprecation", "successor-version"} <= set(relations)
        assert {"deprecation", "sunset"} <= set(answer.headers)


def _check_content(method: str, answer: Answer) -> None:
    if answer.status in (204, 304):
        assert answer.body == b""
        assert not {"content-type", "content-length", "content-encoding"} & set(answer.headers)
        return
    assert answer.headers["content-type"] == "application/json"
    if method == "HEAD":
        assert answer.body == b""
        assert int(answer.headers["content-length"]) > 0
        return
    if answer.status >= 400:
        check_error(answer)
