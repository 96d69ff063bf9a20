"""Requests that are refused before their body is read, from clients that send head and body apart and then go
on with the connection: each next request is answered, or the refusal has said that the connection ends.
"""

from __future__ import annotations

import http.client
import json
import random
import shutil
import subprocess
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2

from tests.support.waiting import pause

DELAYS_SECONDS = (0.0, 0.001, 0.005, 0.02)  # between head and body
BODY = b'{"name":"Rex","categoryId":1}'
NEXT = "/healthz"  # needs no key, and is never refused
_PATIENCE_SECONDS = 20.0
_NODE_SCRIPT = Path(__file__).with_name("refusals.mjs")

Refusal = tuple[str, str, dict[str, str]]
Outcomes = Counter[str]
# The outcomes of a refused request and of the next one; every other outcome is a fault.
GOOD = frozenset({"the next answered", "the end announced"})


def refusals(key: str, chance: random.Random) -> Iterator[Refusal]:
    """Method, path and headers of requests that no handler reads the body of, without an end."""
    own, wrong = {"Authorization": f"Bearer {key}"}, {"Authorization": "Bearer pets_live_wrong"}
    json_type, text = {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}
    kinds: list[Refusal] = [
        ("POST", "/v1/pets", wrong | json_type),  # 401, then 429
        ("PATCH", "/v1/pets/1", json_type),
        ("POST", "/v1/nothing", own | json_type),  # 404
        ("PUT", "/v1/pets", own | json_type),  # 405
        ("POST", "/v1/pets", own | text),  # 415
        ("POST", "/v1/pets?x=1", own | json_type),  # 400
        ("DELETE", "/v1/pets/999999", own),
        ("GET", "/v1/pets?limit=1", own),  # 200, and nobody reads its body
        ("POST", "/healthz", json_type),
        ("POST", "/console/people", text),
    ]
    while True:
        method, path, headers = chance.choice(kinds)
        yield method, path, headers | {"Content-Length": str(len(BODY))}


def _late(seconds: float) -> Iterator[bytes]:
    if seconds:
        pause(seconds)
    yield BODY


def by_http_client(port: int, asked: list[Refusal], seconds: float) -> Outcomes:
    """Ask as a program on http.client does: it believes what the answer says about the connection."""
    outcomes: Outcomes = Counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_SECONDS)
    for method, path, headers in asked:
        try:
            connection.request(method, path, _late(seconds), headers)
            answer = connection.getresponse()
            answer.read()
            outcomes[_next_of(connection) if connection.sock else "the end announced"] += 1
        except (OSError, http.client.HTTPException) as error:
            outcomes[f"http.client: {type(error).__name__}"] += 1
            connection.close()
    connection.close()
    return outcomes


def _next_of(connection: http.client.HTTPConnection) -> str:
    connection.request("GET", NEXT)
    answer = connection.getresponse()
    answer.read()
    return "the next answered" if answer.status == 200 else f"http.client: {answer.status}"


def by_urllib(port: int, asked: list[Refusal], seconds: float) -> Outcomes:
    """Send by urllib, with a connection for each request: the refusal itself has to arrive."""
    outcomes: Outcomes = Counter()
    for method, path, headers in asked:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", _late(seconds), headers)
        request.method = method
        try:
            urllib.request.urlopen(request, timeout=_PATIENCE_SECONDS).close()
        except urllib.error.HTTPError as error:
            error.close()
        except (OSError, http.client.HTTPException) as error:
            outcomes[f"urllib: {type(error).__name__}"] += 1
            continue
        outcomes["the end announced"] += 1
    return outcomes


def by_httpx(port: int, asked: list[Refusal], seconds: float) -> Outcomes:
    """Send by a client with a pool."""
    outcomes: Outcomes = Counter()
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=_PATIENCE_SECONDS) as client:
        for method, path, headers in asked:
            try:
                refused = client.request(method, path, content=_late(seconds), headers=headers)
                status = client.get(NEXT).status_code
            except httpx2.TransportError as error:
                outcomes[f"httpx: {type(error).__name__}"] += 1
                continue
            went_on = "the end announced" if "connection" in refused.headers else "the next answered"
            outcomes[went_on if status == 200 else f"httpx: {status}"] += 1
    return outcomes


def by_node(port: int, asked: list[Refusal], seconds: float) -> Outcomes:
    """Send by Node.js with an agent that keeps its one connection; nothing where there is no Node.js."""
    if not (node := shutil.which("node")):
        return Counter()
    asking = {"port": port, "asked": asked, "body": BODY.decode(), "next": NEXT, "ms": seconds * 1_000}
    command = [node, str(_NODE_SCRIPT)]
    done = subprocess.run(command, input=json.dumps(asking), capture_output=True, text=True, check=True)
    return Counter(json.loads(done.stdout))


CLIENTS: tuple[Callable[[int, list[Refusal], float], Outcomes], ...] = (
    by_http_client,
    by_urllib,
    by_httpx,
    by_node,
)
