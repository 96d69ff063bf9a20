"""Two replicas of two workers behind nginx, PostgreSQL and Valkey, as `make cluster` starts them.

The promises of one process, kept by all of them together.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from petstore_client import Petstore

from tests.support.cluster import (
    Client,
    Followers,
    Load,
    address,
    counters,
    issue_key,
    metric,
    old_worker,
    pass_time,
    running_cluster,
    wait_for_another,
    walk,
    workers,
)
from tests.support.day import play_day, use_up
from tests.support.postgres import run
from tests.support.waiting import pause, wait_for
from tools.cluster.cluster import Cluster

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.xdist_group("e2e-cluster")]

CONNECTIONS = 6  # to each replica, so that every worker has some
PAUSE = 0.01  # of a client: all of them together ask hundreds of times in a second


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One for all tests of this module."""
    with running_cluster(access_log="off", ban_minimum_rejections="1000000", drain="1s") as running:
        yield running


@pytest.fixture(scope="module")
def key(cluster: Cluster) -> str:
    """A key that nothing limits."""
    return issue_key(cluster, "large")


@pytest.fixture
def clients(cluster: Cluster, key: str) -> Iterator[list[Client]]:
    """Connections to both replicas by turns."""
    yield from connected(cluster, key)


def connected(cluster: Cluster, key: str) -> Iterator[list[Client]]:
    made = [Client(port, key) for _ in range(CONNECTIONS) for port in cluster.ports.replicas]
    yield made
    for client in made:
        client.close()


def stored(cluster: Cluster, key: str, names: list[str]) -> Counter[str]:
    """How often each of the names is in the store."""
    wanted = set(names)
    with Petstore(front(cluster), key) as client:
        return Counter(pet.name for pet in client.pets.list() if pet.name in wanted)


def front(cluster: Cluster) -> str:
    """The address of nginx, which gives requests to the replicas by turns."""
    return f"http://127.0.0.1:{cluster.ports.front}"


class TestTheClient:
    """The Python client, through nginx to both replicas."""

    def test_a_customers_day(self, cluster: Cluster, key: str) -> None:
        """Each call of a customer's day sees what earlier calls did, in a cluster as with one process."""
        with Petstore(front(cluster), key) as client:
            play_day(client, category_id=7)

    def test_a_used_up_minute(self, cluster: Cluster) -> None:
        """The client counts along with both replicas."""
        with Petstore(front(cluster), issue_key(cluster, "small", per_minute=3)) as client:
            use_up(client, 3)

    def test_it_is_downloaded_whole(self, cluster: Cluster, key: str) -> None:
        """Through nginx the package arrives with the hash that the page shows."""
        client = Client(cluster.ports.front, key)
        page = client("GET", "/docs/clients").body.decode()
        found = re.search(r"(/docs/clients/[^/]+\.whl)#sha256=([0-9a-f]{64})", page)
        assert found is not None
        assert hashlib.sha256(client("GET", found[1]).body).hexdigest() == found[2]
        client.close()


class TestEveryReplica:
    """What one replica was told, every other knows with its next request."""

    def test_a_key_that_lost_access_is_refused_by_the_next_request(self, cluster: Cluster) -> None:
        """Every worker of both replicas refuses it, which all have kept the key, and through nginx."""
        secret = issue_key(cluster, "leaked")
        for made in connected(cluster, secret):
            made.append(Client(cluster.ports.front, secret))
            assert {client("GET", "/v1/pets?limit=1").status for client in made} == {200}
            for change, status in (("suspend", 403), ("resume", 200)):
                cluster.petstore("accounts", change, "leaked")
                assert [client("GET", "/v1/pets?limit=1").status for client in made] == [status] * len(made)
            ((number,),) = run(address(cluster), "SELECT max(id) FROM api_keys")
            cluster.petstore("keys", "revoke", str(number))
            assert [client("GET", "/v1/pets?limit=1").status for client in made] == [401] * len(made)

    def test_an_added_animal_is_in_the_next_list(self, clients: list[Client]) -> None:
        """Every worker of both replicas lists it, which all have kept that page."""
        for turn, client in enumerate(clients):
            number = client.add(f"seen-{turn}").json()["id"]
            for other in clients:
                assert [pet["id"] for pet in other("GET", f"/v1/pets?id={number}").json()] == [number]
                assert other("GET", "/v1/pets?limit=100").status == 200
            added = clients[turn - 1].add(f"last-{turn}").json()["id"]
            for other in clients:
                assert other("GET", f"/v1/pets?id={added}&id={number}").json()[-1]["id"] == added

    def test_a_walk_through_both_keeps_its_promise(
        self, cluster: Cluster, key: str, clients: list[Client]
    ) -> None:
        """Pages by turns from either replica, while animals are added through both: each that was there
        before the first page exactly once, each other one at most once, in ascending order."""
        with Load(cluster.ports.front, key, pause_seconds=PAUSE) as load:
            load.wait_for_more(100)
            for _ in range(3):
                before = {pet["id"] for pet in walk(clients)}
                found = [pet["id"] for pet in walk(clients, limit=20)]
                assert found == sorted(set(found))
                assert before <= set(found)
        assert load.failed == []
        assert stored(cluster, key, load.added) == Counter(load.added)


class TestEvents:
    """Waits through nginx, which spreads them over both replicas."""

    def test_what_one_replica_writes_reaches_the_waiters_of_all(self, cluster: Cluster, key: str) -> None:
        """Whichever worker of it wrote."""
        for replica in cluster.replicas:
            with Followers(cluster, key, 8) as followers:
                wait_for(lambda: waiting(cluster) == 8, "all of them to wait")
                writer = Client(replica.port, key)
                added = writer.add("Rex").json()["id"]
                writer.close()
                wait_for(lambda: followers.seen == [[added]] * 8, "the event")  # noqa: B023
            assert followers.failed == []


def waiting(cluster: Cluster) -> float:
    return sum(metric(replica, "petstore_events_waiting") for replica in cluster.replicas)


class TestWithoutAnInterruption:
    """Restarts and reloads under load: no request of any kind fails, and nothing is stored twice."""

    def test_a_rolling_restart_and_a_reload(self, cluster: Cluster, key: str) -> None:
        """SIGTERM to one replica after the other, then SIGHUP, which replaces workers one by one; a POST
        without an Idempotency-Key is not lost either. No wait for events fails: each follower learns of every
        animal once, all in the same order, whichever replica they ask."""
        with Followers(cluster, key, 8) as followers:
            wait_for(lambda: waiting(cluster) == 8, "all of them to wait")
            with Load(cluster.ports.front, key, pause_seconds=PAUSE) as load:
                load.wait_for_more(60)
                for replica in cluster.replicas:
                    before = replica.child.pid
                    cluster.restart(replica)
                    assert replica.child.pid != before
                    load.wait_for_more(60)
                replaced = set(workers(replica))
                os.kill(replica.child.pid, signal.SIGHUP)
                wait_for(
                    lambda: len(now := set(workers(replica))) == 2 and not now & replaced, "the new workers"
                )
                load.wait_for_more(60)
            wait_for(lambda: {len(seen) for seen in followers.seen} == {len(load.added)}, "all events")
        assert (load.failed, followers.failed) == ([], [])
        assert min(load.answered[kind] for kind in ("list", "plain", "keyed")) > 50
        assert stored(cluster, key, load.added) == Counter(load.added)
        first, *others = followers.seen
        assert len(set(first)) == len(first)
        assert others == [first] * 7


class TestDeath:
    """A worker that is killed with SIGKILL."""

    def test_no_sum_falls(self, cluster: Cluster, key: str) -> None:
        """Scrapes of whichever worker answers, under load: while one is killed and started again, while all
        are replaced, and for a while before and after."""
        replica = cluster.replicas[0]
        killed, _ = old_worker([replica])
        seen: dict[str, float] = {}
        falls: list[tuple[str, float, float]] = []

        def scrape_until_gone(*pids: int) -> None:
            more = 20
            while more:
                try:
                    now = counters(replica)
                except (OSError, http.client.HTTPException):  # the one that is killed
                    continue
                falls.extend((name, seen[name], now[name]) for name in seen if now[name] < seen[name])
                seen.update(now)
                there = workers(replica)
                more -= len(there) == 2 and not set(pids) & set(there)

        with Load(replica.port, key, clients=2, pause_seconds=PAUSE) as load:
            load.wait_for_more(100)  # a third of them lists
            scrape_until_gone()
            os.kill(killed, signal.SIGKILL)
            scrape_until_gone(killed)
            before = workers(replica)
            os.kill(replica.child.pid, signal.SIGHUP)
            scrape_until_gone(*before)
            load.wait_for_more(1)
        assert falls == []
        assert seen['petstore_requests_total{operation="listPets",status="200"}'] > 20
        wait_for_another(killed, replica)

    def test_the_quota_is_exact_meanwhile(self, cluster: Cluster) -> None:
        """One account over all four workers uses up its minute, then its day, while a worker dies: as many
        are admitted as the limits say, but for those that it had counted and not answered."""
        for attempt in range(5):
            name, minute, day = f"used-up-{attempt}", 500, 900
            secret = issue_key(cluster, name, per_minute=minute, per_day=day)
            outages = lost_counters(cluster)
            first = demand(cluster, secret, minute, kill=False)
            pass_time(cluster, name, 60_000)
            second = demand(cluster, secret, day - minute, kill=True)
            if wait_until_still(lambda: lost_counters(cluster)) > outages:
                continue  # a busy machine did not answer in time: each worker had its share meanwhile
            assert first == (minute, 0)
            admitted, unanswered = second
            assert admitted <= day - minute <= admitted + unanswered
            assert unanswered <= CONNECTIONS
            return
        pytest.fail("Valkey did not answer in time in any of five attempts.")


def wait_until_still(count: Callable[[], float]) -> float:
    """The count, once looks at both workers agree for longer than the second in which they share theirs."""
    seen: list[float] = []

    def is_still() -> bool:
        pause(0.05)  # each look costs a replica 20 ms
        seen.append(count())
        return len(seen) > 20 and len(set(seen[-20:])) == 1

    wait_for(is_still, "the counts of all workers")
    return seen[-1]


def lost_counters(cluster: Cluster) -> float:
    """How often workers went without Valkey."""
    return sum(metric(replica, "petstore_limiter_outages_total") for replica in cluster.replicas)


def demand(cluster: Cluster, secret: str, limit: int, *, kill: bool) -> tuple[int, int]:
    """Clients at all workers ask until each is refused, while one may be killed. Admitted, unanswered."""
    seen: Counter[int] = Counter()
    half = threading.Event()
    victim, replica = old_worker(cluster.replicas) if kill else (0, cluster.replicas[0])

    def ask(port: int) -> None:
        client, last = Client(port, secret), 0
        while last != 429:
            try:
                last = client("GET", "/v1/pets?limit=1").status
            except (OSError, http.client.HTTPException):
                last = 0
            seen[last] += 1
            if seen[200] >= limit // 2:
                half.set()
        client.close()

    ports = cluster.ports.replicas * (CONNECTIONS // 2)
    threads = [threading.Thread(target=ask, args=(port,)) for port in ports]
    for thread in threads:
        thread.start()
    if kill:
        # In an outage all may be refused before half of the limit: then the caller tries again.
        wait_for(lambda: half.is_set() or not any(one.is_alive() for one in threads), "half of the limit")
        os.kill(victim, signal.SIGKILL)
    for thread in threads:
        thread.join()
    if kill:
        wait_for_another(victim, replica)
    assert set(seen) <= {200, 429, 0}
    return seen[200], seen[0]
