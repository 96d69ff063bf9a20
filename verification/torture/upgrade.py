"""The upgrade, there and back: python -m verification.torture.upgrade --from COMMIT --seed N --seconds S

N-1 is the program of COMMIT, built from history with its own lock; N is this one with one more migration made
up, which adds a column. Under load they use one database, a SQLite file, then PostgreSQL with Valkey behind
nginx: it is migrated, commands of both run, workers are killed, replicas are rolled to N and back, and each
program stores lists that the other one has begun with. The exit
code is 1 when a request failed that should not have, or when something was lost.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from petstore.core.keys import KEY_PATTERN
from tests.support.cluster import Client, Load, running_cluster, walk, workers
from tests.support.programs import Copy, from_history
from tests.support.report import Report
from tests.support.server import running_server
from tests.support.waiting import wait_for
from tools.cluster.cluster import Cluster
from tools.release import last_release
from tools.servers.petstore import run
from verification.torture.meeting import Staff

# No change may shut it out by accident.
LAST_RELEASE = last_release()
_CLIENTS = 3
_LIMIT = 40


class Program:
    """A version of the program: the file that runs it, and its commands."""

    def __init__(self, name: str, file: Path) -> None:
        self.name = name
        self.file = file
        self.settings: Mapping[str, str] = {}

    def __call__(self, *words: str) -> str:
        """What a command prints. Raises RuntimeError when it fails."""
        done = run(*words, settings=self.settings, program=self.file)
        if done.returncode:
            raise RuntimeError(f"{self.name}: petstore {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def key(self, account: str, per_minute: int = 10**6) -> tuple[str, str]:
        """A key of a new account: its text and its id."""
        limits = ("--per-minute", str(per_minute), "--per-day", str(10**7))
        self("accounts", "add", account, "--plan", "enterprise", *limits)
        issued = json.loads(self("keys", "issue", account, "--json"))
        assert re.fullmatch(KEY_PATTERN, issued["key"])
        return issued["key"], str(issued["id"])


class Store(Report):
    """What was done in one store, and what of it failed."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[Load] = []

    @contextmanager
    def load(self, port: int, key: str) -> Iterator[Load]:
        with Load(port, key, _CLIENTS) as load:
            self.loads.append(load)
            yield load

    @contextmanager
    def step(self, what: str, load: Load, may_fail: int = 0) -> Iterator[None]:
        """Count the requests answered meanwhile; `may_fail` may have died with a killed process."""
        answered, failed = load.answered.total(), len(load.failed)
        load.wait_for_more(30)
        yield
        load.wait_for_more(30)
        new = load.failed[failed:]
        self.counts[f"times {what}"] += 1
        self.counts["requests meanwhile"] += load.answered.total() - answered
        self.counts["requests failed"] += len(new)
        for fault in new[:3] if len(new) > may_fail else ():
            self.fault(f"{what}: {fault}")

    def expect(self, what: str, found: object, expected: object) -> None:
        """A fault unless they are equal."""
        if found != expected:
            self.fault(f"{what}: {found}, not {expected}")

    def revoke(self, program: Program, ports: list[int]) -> None:
        """A key that a command has revoked is refused with the next request, whichever program serves."""
        key, number = program.key(f"leaky-{time.monotonic_ns()}")
        for expected in (200, 401):
            answers = {Client(port, key)("GET", "/v1/pets?limit=1").status for port in ports}
            self.expect(f"a key that {program.name} has issued, and revoked", answers, {expected})
            program("keys", "revoke", number)

    def finish(self, staff: Staff, stored_by: int, read_at: int, key: str) -> None:
        """A list that the other program has begun with is stored once, and its animals are read at once."""
        staff.store(stored_by)
        self.counts["lists begun by one program and stored by the other"] += 1
        self.expect("animals of a list lost or doubled", staff.missing([Client(read_at, key)]), 0)

    def look_back(self, port: int, key: str) -> None:
        """Every animal that was acknowledged is there, and there once."""
        kept = Counter(pet["name"] for pet in walk([Client(port, key)]))
        added = [name for load in self.loads for name in load.added]
        self.counts["acknowledged animals looked up"] += len(added)
        self.expect("lost or doubled", len([name for name in added if kept[name] != 1]), 0)


def try_sqlite(report: Store, before: Program, after: Program, folder: Path, seed: int) -> None:
    """One server at a time: N-1 on a file that N migrates under it, then each of them on that file."""
    chance = random.Random(seed)
    before.settings = after.settings = {"database_url": f"sqlite:///{folder}/petstore.db"}
    before("db", "migrate")
    key, _ = before.key("load")
    with (
        running_server(folder, program=before.file, drain=None, access_log="off") as server,
        report.load(server.port, key) as load,
    ):
        with report.step("N migrates the file of a server of N-1", load):
            report.expect("a step ran", "_made_up" in after("db", "migrate"), True)
        with report.step("N-1 revokes a key", load):
            report.revoke(before, [server.port])
        with report.step("SIGHUP to N-1", load):
            _replace(server.workers, server.pid, signal.SIGHUP)
        with report.step("the worker of N-1 is killed", load, may_fail=_CLIENTS):
            load.wait_for_more(chance.randrange(20, 200))
            _replace(server.workers, server.workers()[0], signal.SIGKILL)
            server.wait_until_ready()
        staff = Staff(before, server.port)
        staff.send(server.port)
    for program, other in ((before, after), (after, before), (before, after)):
        with running_server(folder, program=program.file, drain=None, access_log="off") as server:
            with report.load(server.port, key) as load, report.step(f"{program.name} is started on it", load):
                report.revoke(other, [server.port])
                load.wait_for_more(chance.randrange(50, 300))
                report.finish(staff, server.port, server.port, key)
                staff.send(server.port)
            if len(report.loads) == 4:
                report.look_back(server.port, key)
    report.expect("problems", json.loads(before("db", "check", "--json"))["problems"], [])


def try_cluster(
    report: Store, before: Program, after: Program, cluster: Cluster, seed: int, seconds: float
) -> None:
    """Two replicas behind nginx: migrated under load, rolled to N and back, and mixed."""
    chance = random.Random(seed)
    before.settings = after.settings = {
        name: cluster.settings[name] for name in ("database_url_file", "valkey_url_file")
    }
    key, _ = before.key("load")
    ports = list(cluster.ports.replicas)
    staff = Staff(before, ports[0])
    with report.load(cluster.ports.front, key) as load:
        with report.step("N migrates the database of N-1", load):
            report.expect("a step ran", "_made_up" in after("db", "migrate"), True)
        with report.step("N-1 revokes a key", load):
            report.revoke(before, ports)
        replica = chance.choice(cluster.replicas)
        with report.step("SIGHUP to a replica of N-1", load):
            _replace(lambda: workers(replica), replica.child.pid, signal.SIGHUP)
        with report.step("a worker of N-1 is killed", load, may_fail=_CLIENTS):
            load.wait_for_more(chance.randrange(20, 200))
            _replace(lambda: workers(replica), workers(replica)[0], signal.SIGKILL)
        ends, rolls = time.monotonic() + seconds, 0
        while rolls < len(cluster.replicas) or time.monotonic() < ends:  # there and back at least
            program = (after, before)[rolls % 2]
            for what, each in zip(("one", "the other"), chance.sample(cluster.replicas, 2), strict=True):
                with report.step(f"{what} replica to {program.name}", load):
                    each.program = program.file
                    cluster.restart(each)
                if what == "one":
                    with report.step("N and N-1 side by side", load):
                        report.revoke(before, ports)
                        report.revoke(after, ports)
                        for sent_to, stored_by in (ports, ports[::-1]):
                            staff.send(sent_to)
                            report.finish(staff, stored_by, sent_to, key)
                        # A release may count under other names: then each admits the whole limit.
                        report.most(f"admitted of {_LIMIT} side by side", _admitted(before, ports))
            report.expect("admitted by replicas of one program", _admitted(before, ports), _LIMIT)
            rolls += 1
    report.look_back(ports[0], key)


def _admitted(program: Program, ports: list[int]) -> int:
    """How many are admitted of twice a minute's limit, sent to both replicas by turns."""
    key, _ = program.key(f"narrow-{time.monotonic_ns()}", _LIMIT)
    clients = [Client(port, key) for port in ports]
    statuses = [clients[turn % 2]("GET", "/v1/pets?limit=1").status for turn in range(2 * _LIMIT)]
    return statuses.count(200)


def _replace(workers_now: Callable[[], list[int]], pid: int, how: signal.Signals) -> None:
    """Signal a worker, or its parent, and wait until it is gone, or all are, and as many are there."""
    old = set(workers_now())
    gone = {pid} & old or old
    os.kill(pid, how)

    def replaced() -> bool:
        now = set(workers_now())
        return not gone & now and len(now) == len(old)

    wait_for(replaced, "other workers")


def main() -> int:
    """Run the campaign; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m verification.torture.upgrade", description=__doc__)
    parser.add_argument("--from", dest="commit", default=LAST_RELEASE, help=f"default: {LAST_RELEASE}")
    parser.add_argument("--seed", type=int, default=1, help="of both parts (default: 1)")
    parser.add_argument("--seconds", type=float, default=30, help="for rolling there and back (default: 30)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="petstore-upgrade-") as temporary:
        folder = Path(temporary)
        before = Program("N-1", from_history(arguments.commit, folder / "before"))
        (folder / "after").mkdir()
        copy = Copy(folder / "after")
        copy.add_step()
        after = Program("N", copy.program)
        (folder / "store").mkdir()
        embedded, shared = Store(), Store()
        with _noted(embedded):
            try_sqlite(embedded, before, after, folder / "store", arguments.seed)
        with _noted(shared), running_cluster(before.file, access_log="off", console="on") as cluster:
            try_cluster(shared, before, after, cluster, arguments.seed, arguments.seconds)
    sys.stdout.write(f"N-1 is {arguments.commit}, seed {arguments.seed}\n")
    sys.stdout.write(f"SQLite: {embedded}\nPostgreSQL: {shared}\n")
    return 1 if embedded.faults or shared.faults else 0


@contextmanager
def _noted(report: Store) -> Iterator[None]:
    """What ends a part is one of its faults, so that the rest is printed all the same."""
    try:
        yield
    except (AssertionError, RuntimeError) as error:
        report.fault(str(error))


if __name__ == "__main__":
    sys.exit(main())
