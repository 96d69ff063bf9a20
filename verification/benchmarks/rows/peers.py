"""The same job by this service and by peers, side by side: same data, same page, durable additions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import apsw

from verification.benchmarks import servers
from verification.benchmarks.data import copy_of, database
from verification.benchmarks.interleaved import Plan, medians
from verification.benchmarks.load.closed import Load, run
from verification.benchmarks.peers.install import Unavailable
from verification.benchmarks.peers.launch import PEERS, Peer, running
from verification.benchmarks.report import Row
from verification.benchmarks.rows.reads import ANIMALS, LIST
from verification.benchmarks.rows.writes import BODY, post

CONNECTIONS = 64
OURS = "petstore"


def _ask(port: int, method: str, target: str, key: str = "", body: str = "") -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    if body:
        headers["Content-Type"] = "application/json"
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, target, body or None, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def verify(peer: Peer, port: int, file: Path, key: str, page: object) -> None:
    """Raise RuntimeError unless the peer does the job: the page, the keys, and an addition that is kept."""
    status, body = _ask(port, "GET", peer.page, key)
    if status != 200 or json.loads(body) != page:
        raise RuntimeError(f"{peer.name} answers another page: {status} {body[:200]!r}")
    if peer.has_keys:
        for wrong in ("", key[:-1] + ("a" if key[-1] != "a" else "b")):
            status, _ = _ask(port, "GET", peer.page, wrong)
            if status != 401:
                raise RuntimeError(f"{peer.name} answers {status} without a valid key")
    if peer.writes:
        status, body = _ask(port, "POST", LIST.partition("?")[0], key, BODY)
        if status != 201:
            raise RuntimeError(f"{peer.name} answers {status} to an addition: {body[:200]!r}")
        animal, sent = json.loads(body), json.loads(BODY)
        reader = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
        row = reader.execute("SELECT name, category_id FROM pets WHERE id = ?", (animal["id"],)).fetchone()
        reader.close()
        if row != (sent["name"], sent["categoryId"]):
            raise RuntimeError(f"{peer.name} answered 201 to an addition that is not in the database")


def _start(stack: ExitStack, source: Path, folder: Path) -> list[tuple[Peer, servers.Server, Path]]:
    """The peers that run on this machine; the others are named with the reason."""
    started = []
    for peer in PEERS:
        try:
            server, file = stack.enter_context(running(peer, peer.prepare(), source, folder))
        except (Unavailable, RuntimeError) as error:
            print(f"skipped {peer.name}: {error}", flush=True)
        else:
            started.append((peer, server, file))
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
    """The list of unchanged data, then durable additions."""
    source, (key, *_) = database(ANIMALS)
    # Not in /tmp, which may be memory: an addition's fsync has to reach a disk.
    with tempfile.TemporaryDirectory(dir=source.parent) as temporary, ExitStack() as stack:
        folder = Path(temporary)
        shop = stack.enter_context(servers.petstore(OURS, copy_of(source, folder)))
        _, body = _ask(shop.port, "GET", LIST, key)
        peers = _start(stack, source, folder)
        for peer, server, file in peers:
            verify(peer, server.port, file, key, json.loads(body))

        def pages(port: int, page: str) -> Callable[[], float]:
            return lambda: run(Load((f"{page} {key}",)), port, plan.seconds).per_second

        def additions(port: int) -> Callable[[], float]:
            return post(port, key, CONNECTIONS, plan.seconds)

        lists = {OURS: pages(shop.port, LIST)}
        posts = {OURS: additions(shop.port)}
        for peer, server, _ in peers:
            lists[peer.name] = pages(server.port, peer.page)
            if peer.writes:
                posts[peer.name] = additions(server.port)
        return [
            *_rows("list", medians(lists, plan), {peer.name: peer.list_target for peer, *_ in peers}),
            *_rows(
                f"POST, {CONNECTIONS} connections",
                medians(posts, plan),
                {peer.name: peer.post_target for peer, *_ in peers},
            ),
        ]
