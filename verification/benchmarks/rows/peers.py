"""One job by this service and by peers, side by side: same data, same page, durable changes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import apsw
import msgspec

from tests.support.cluster import Client
from tests.support.server import Response
from verification.benchmarks import servers
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan, medians
from verification.benchmarks.load.closed import Load, rate
from verification.benchmarks.peers.install import Unavailable
from verification.benchmarks.peers.launch import PEERS, Peer, running
from verification.benchmarks.report import Row
from verification.benchmarks.rows.reads import ANIMALS, LIST
from verification.benchmarks.rows.writes import BODY, order, patch, post

CONNECTIONS = 64
OURS = "petstore"
# Method, target and body of each change, and a query for what it has left.
_CHANGES = {
    "POST": (
        "POST",
        "/v1/pets",
        BODY,
        "SELECT id, name, category_id, status FROM pets ORDER BY id DESC LIMIT 1",
    ),
    "PATCH": (
        "PATCH",
        "/v1/pets/1",
        '{"name":"Max","status":"sold"}',
        "SELECT name, category_id, status FROM pets WHERE id = 1",
    ),
    "order": (
        "POST",
        "/v1/store/orders",
        '{"petId":2}',
        "SELECT o.id, account_id, pet_id, o.status, p.status FROM orders o JOIN pets p ON p.id = pet_id",
    ),
}


def _ask(port: int, method: str, target: str, key: str = "", body: str = "") -> Response:
    with closing(Client(port, key)) as client:
        return client(method, target, json.loads(body) if body else None)


class Shop(msgspec.Struct):
    """A running server and its copy of the database."""

    port: int
    file: Path
    key: str

    def change(self, kind: str) -> tuple[int, Any, list[Any]]:
        """The answer to a change, and what another connection reads of it then."""
        method, target, body, look = _CHANGES[kind]
        answer = _ask(self.port, method, target, self.key, body)
        reader = apsw.Connection(str(self.file), flags=apsw.SQLITE_OPEN_READONLY)
        rows = reader.execute(look).fetchall()
        reader.close()
        return answer.status, answer.json(), rows

    def measurement(self, kind: str, page: str, seconds: float) -> Callable[[], float]:
        if kind == "list":
            return rate(Load((f"{page} {self.key}",)), self.port, seconds)
        if kind == "POST":
            return post(self.port, self.key, CONNECTIONS, seconds)
        return {"PATCH": patch, "order": order}[kind](self.port, self.key, self.file, seconds)


def verify(peer: Peer, shop: Shop, page: object, changes: Mapping[str, object]) -> None:
    """Raise RuntimeError unless the peer does the job: the page, the keys, and changes that are kept."""
    answer = _ask(shop.port, "GET", peer.page, shop.key)
    if answer.status != 200 or answer.json() != page:
        raise RuntimeError(f"{peer.name} answers another page: {answer.status} {answer.body[:200]!r}")
    if peer.has_keys:
        for wrong in ("", shop.key[:-1] + ("a" if shop.key[-1] != "a" else "b")):
            if (status := _ask(shop.port, "GET", peer.page, wrong).status) != 401:
                raise RuntimeError(f"{peer.name} answers {status} without a valid key")
    for kind in _CHANGES.keys() & peer.targets.keys():
        changed = shop.change(kind)
        if changed != changes[kind]:
            raise RuntimeError(f"{peer.name}: {kind} is {changed}, not {changes[kind]}")
    if "order" in peer.targets and (again := shop.change("order")[0]) != 409:
        raise RuntimeError(f"{peer.name} answers {again} to an order of an animal that is not available")


def _start(stack: ExitStack, source: Path, folder: Path, key: str) -> list[tuple[Peer, Shop]]:
    """The peers that run on this machine; the others are named with the reason."""
    started = []
    for peer in PEERS:
        try:
            server, file = stack.enter_context(running(peer, peer.prepare(), source, folder))
        except (Unavailable, RuntimeError) as error:
            print(f"skipped {peer.name}: {error}", flush=True)
        else:
            started.append((peer, Shop(server.port, file, key)))
    return started


def _rows(kind: str, taken: dict[str, float], targets: dict[str, str]) -> list[Row]:
    """This service's rate, and by how much it is quicker than each peer."""
    ours = taken[OURS]
    return [
        Row(
            "peers",
            f"{kind}: {name}",
            value,
            "requests/s",
            *((None, "", "") if name == OURS else (ours / value, f"{OURS} ÷ it", targets[name])),
        )
        for name, value in taken.items()
    ]


def measure(plan: Plan) -> list[Row]:
    """The list of unchanged data, then durable changes."""
    source, (key, *_) = database(ANIMALS)
    # Not in /tmp, which may be memory: a commit's fsync has to reach a disk.
    with tempfile.TemporaryDirectory(dir=source.parent) as temporary, ExitStack() as stack:
        folder = Path(temporary)
        file = copy_of(source, folder)
        ours = Shop(stack.enter_context(servers.petstore(OURS, file)).port, file, key)
        page = _ask(ours.port, "GET", LIST, key).json()
        changes = {kind: ours.change(kind) for kind in _CHANGES}
        peers = _start(stack, source, folder, key)
        for peer, shop in peers:
            verify(peer, shop, page, changes)
        rows = []
        for kind in ("list", *_CHANGES):
            measurements = {OURS: ours.measurement(kind, LIST, plan.seconds)}
            targets = {peer.name: peer.targets[kind] for peer, _ in peers if kind in peer.targets}
            for peer, shop in peers:
                if kind in peer.targets:
                    measurements[peer.name] = shop.measurement(kind, peer.page, plan.seconds)
            name = kind if kind == "list" else f"{kind}, {CONNECTIONS} connections"
            rows += _rows(name, medians(measurements, plan), targets)
        return rows
