"""The real topology for tests: tools/cluster in a directory of its own, and clients that load it.

nginx has to be there: where it is not, tests skip, and fail when CI is set.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Self

import pytest

from tests.support import machine
from tests.support.loops import working
from tests.support.postgres import run
from tests.support.server import Response
from tests.support.server import issue_key as key_in
from tests.support.valkey import Client as ValkeyClient
from tests.support.waiting import wait_for
from tools.cluster.cluster import Cluster, Ports
from tools.servers.child import status_of
from tools.servers.child import workers as workers_of
from tools.servers.petstore import PROGRAM, Petstore
from tools.servers.ports import free_ports


@contextmanager
def running_cluster(program: Path = PROGRAM, **settings: str) -> Iterator[Cluster]:
    """A cluster of that program with these settings for its replicas."""
    machine.program("nginx")
    with machine.folder() as path, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", os.devnull)  # to read all authorities takes each process 0.1 s
        cluster = Cluster(path, Ports.from_first(free_ports(5)[0]), lambda _: None, settings, program)
        cluster.start()
        try:
            yield cluster
        finally:
            cluster.stop()


def issue_key(cluster: Cluster, name: str, *, per_minute: int = 10**6, per_day: int = 10**7) -> str:
    """A key of a new Enterprise account."""
    return key_in(address(cluster), name, per_minute=per_minute, per_day=per_day)


def address(cluster: Cluster) -> str:
    """The URL of the cluster's database."""
    return cluster.postgres.url_file.read_text().strip()


class Client:
    """One connection that is kept, as a program of a customer keeps it."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._key = key

    def __call__(
        self, method: str, target: str, document: object = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """One request. Raises OSError and HTTPException when there is no whole answer."""
        body = None if document is None else json.dumps(document).encode()
        sent = {
            "Authorization": f"Bearer {self._key}",
            **({"Content-Type": "application/json"} if body else {}),
        }
        try:
            self._connection.request(method, target, body, sent | dict(headers or {}))
            answer = self._connection.getresponse()
            return Response(answer, answer.read())
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise

    def add(self, name: str, **headers: str) -> Response:
        """POST an animal; `idempotency_key` becomes a header."""
        given = {header.replace("_", "-"): text for header, text in headers.items()}
        return self("POST", "/v1/pets", {"name": name, "categoryId": 1}, given)

    def close(self) -> None:
        self._connection.close()


class _Clients:
    """Threads at work for the length of a block."""

    def __init__(self, works: Iterable[Callable[[threading.Event], None]]) -> None:
        self._working = working(*works)

    def __enter__(self) -> Self:
        self._working.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._working.__exit__(None, None, None)


class Load(_Clients):
    """Clients on connections of their own that list and add until the block ends, each after a pause.

    `failed` are the requests that were not answered as they should; `added` the names of the acknowledged;
    `slowest` the longest time to an answer, in seconds.
    """

    def __init__(self, port: int, key: str, clients: int = 4, pause_seconds: float = 0.0) -> None:
        self.failed: list[Any] = []
        self.added: list[str] = []
        self.answered: Counter[str] = Counter()
        self.slowest = 0.0
        self._name = secrets.token_hex(4)  # an id() may be that of a load before it, whose names are stored
        self._port = port
        self._key = key
        self._pause_seconds = pause_seconds
        super().__init__(partial(self._run, number) for number in range(clients))
        self._progress = threading.Condition()

    def _run(self, number: int, over: threading.Event) -> None:
        client = Client(self._port, self._key)
        for turn in count():
            if over.wait(self._pause_seconds):
                break
            kind, name = ("list", "plain", "keyed")[turn % 3], f"{self._name}-{number}-{turn}"
            began = time.monotonic()
            try:
                if kind == "list":
                    answer, right = client("GET", "/v1/pets?limit=5"), 200
                else:
                    answer, right = (
                        client.add(name, **({"idempotency_key": name} if kind == "keyed" else {})),
                        201,
                    )
                if answer.status != right:
                    self.failed.append((kind, answer.status, answer.body))
                elif kind != "list":
                    self.added.append(name)
            except (OSError, http.client.HTTPException) as error:
                self.failed.append((kind, repr(error)))
            with self._progress:
                self.answered[kind] += 1
                self.slowest = max(self.slowest, time.monotonic() - began)
                self._progress.notify_all()
        client.close()

    def wait_for_more(self, requests: int) -> None:
        """Wait until so many more have been answered."""
        with self._progress:
            goal = self.answered.total() + requests
            assert self._progress.wait_for(lambda: self.answered.total() >= goal, 30)


class Followers(_Clients):
    """Clients that follow the additions of animals through nginx, until the block ends.

    `seen`: the animals that each has learned of; `failed`: answers that were not as they should.
    """

    def __init__(self, cluster: Cluster, key: str, number: int) -> None:
        self.seen: list[list[int]] = [[] for _ in range(number)]
        self.failed: list[Any] = []
        client = Client(cluster.ports.front, key)
        start = next_of(client("GET", "/v1/events?after=now&type=pet.created"))
        client.close()
        super().__init__(
            partial(self._follow, Client(cluster.ports.front, key), start, seen) for seen in self.seen
        )

    def _follow(self, client: Client, target: str, seen: list[int], over: threading.Event) -> None:
        while not over.is_set():
            try:
                answer = client("GET", f"{target}&wait=2")
                target = next_of(answer).replace("&wait=2", "")
                seen += [event["data"]["id"] for event in answer.json()]
            except (OSError, http.client.HTTPException, KeyError) as error:
                self.failed.append(repr(error))
        client.close()


def next_of(answer: Response) -> str:
    """The next request, "" at the end. Raises KeyError in an error, which has no links."""
    found = re.search(r'<([^>]+)>; *rel="next"', answer.headers["link"])
    return found[1] if found else ""


def walk(clients: list[Client], limit: int = 100) -> list[dict[str, Any]]:
    """All animals, each page from the next of the clients in turn."""
    found: list[dict[str, Any]] = []
    target = f"/v1/pets?limit={limit}"
    for turn in count():
        answer = clients[turn % len(clients)]("GET", target)
        assert answer.status == 200, answer.body
        found += answer.json()
        if not (target := next_of(answer)):
            return found
    raise AssertionError("unreachable: the walk ends")


def workers(replica: Petstore) -> list[int]:
    """The processes that serve (Linux)."""
    return workers_of(replica.child.pid)


def scrape(replica: Petstore) -> str:
    """All metrics of a replica, from whichever worker answers."""
    connection = http.client.HTTPConnection("127.0.0.1", replica.port, timeout=10)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()


def metric(replica: Petstore, name: str) -> float:
    """The sum over all labels of a metric of a replica."""
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", scrape(replica), re.M))


def counters(replica: Petstore) -> dict[str, float]:
    """Every sample that must not fall, by its name and labels."""
    found = re.findall(r"^(\w+_(?:total|count|sum|bucket)(?:{.*})?) (\S+)$", scrape(replica), re.M)
    return {name: float(value) for name, value in found}


def old_worker(replicas: list[Petstore]) -> tuple[int, Petstore]:
    """The oldest worker: a second death within seconds of the first would end the service."""
    pid, replica = max(
        ((pid, each) for each in replicas for pid in workers(each)), key=lambda one: age_of(one[0])
    )
    wait_for(lambda: age_of(pid) > 5.5, "a worker that is old enough")
    return pid, replica


def wait_for_another(dead: int, replica: Petstore) -> None:
    """Wait until another one has taken its place."""
    wait_for(lambda: len(now := workers(replica)) == 2 and dead not in now, "another worker")
    wait_for(lambda: status_of(replica.port, "/readyz") == 200, "it to serve")


def pass_time(cluster: Cluster, name: str, milliseconds: int) -> None:
    """Move the opening of the account's minute back by `milliseconds`: the next request opens a new one."""
    client = ValkeyClient(cluster.valkey.url_file.read_text())
    ((number,),) = run(address(cluster), f"SELECT id FROM accounts WHERE name = '{name}'")
    place = f"{{petstore}}:windows:{number}"
    opened, used, day, day_used, epoch = map(int, client("GET", place).split())
    client("SET", place, f"{opened - milliseconds} {used} {day} {day_used} {epoch}", "KEEPTTL")


def age_of(pid: int) -> float:
    """The age of a process in seconds (Linux)."""
    began = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return float(Path("/proc/uptime").read_text().split()[0]) - began / os.sysconf("SC_CLK_TCK")
