"""/metrics of the real server: what only a process of its own has."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from petstore.core.clock import SystemClock
from petstore.ops.worker_metrics import metrics_directory
from tests.support.cluster import age_of
from tests.support.receiver import receiving
from tests.support.server import Server, running_server
from tests.support.waiting import wait_for
from tools.servers.petstore import PROGRAM, environment

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e-metrics")]

CLIENTS = 25


def sample(server: Server, name: str) -> float:
    text = server.request("GET", "/metrics", key="").body.decode()
    (value,) = re.findall(rf"^{name} (\S+)$", text, re.M)
    return float(value)


def test_connections_are_those_of_clients(server: Server) -> None:
    """petstore_connections counts the clients that are there, with the scrape, and no other descriptor."""
    wait_for(lambda: sample(server, "petstore_connections") == 1, "the end of earlier ones")
    with ExitStack() as stack:
        for _ in range(CLIENTS):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        wait_for(lambda: sample(server, "petstore_connections") == CLIENTS + 1, "the connections")
    wait_for(lambda: sample(server, "petstore_connections") == 1, "their end")


def test_numbers_go_on_when_the_worker_is_another_one(tmp_path: Path) -> None:
    """Counters and the time of the last backup, after SIGHUP and after a death; nothing is left then."""
    name = 'petstore_requests_total{operation="listPets",status="200"}'.replace("{", r"\{")
    backup = "petstore_backup_timestamp_seconds"
    with running_server(tmp_path) as server:
        assert sample(server, backup) == 0
        settings = environment({"database_url": f"sqlite:///{server.database}"})
        began = SystemClock().now_ms() / 1_000
        subprocess.run([PROGRAM, "db", "backup", tmp_path / "copy.db"], env=settings, check=True)
        assert began - 1 < sample(server, backup) < SystemClock().now_ms() / 1_000 + 1
        for kill in (signal.SIGHUP, signal.SIGKILL):
            (worker,) = server.workers()
            assert server.request("GET", "/v1/pets").status == 200
            shown = sample(server, name)
            assert shown > 0
            os.kill(server.pid if kill == signal.SIGHUP else worker, kill)
            wait_for(lambda: bool(now := server.workers()) and worker not in now, "another worker")  # noqa: B023
            assert sample(server, name) == shown
            assert sample(server, backup) > began - 1
        (worker,) = server.workers()
        directory = left_by(worker)
        server.terminate()
    assert not directory.exists()


@pytest.mark.parametrize("place", ["/dev/shm", tempfile.gettempdir()])
def test_where_numbers_are_left(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """The numbers of workers are left in memory, else in a file, and where neither is possible, nowhere."""
    makes = tempfile.TemporaryDirectory

    def make(**where: Any) -> tempfile.TemporaryDirectory[str]:
        if (where["dir"] or tempfile.gettempdir()) != place:
            raise OSError
        return makes(**where)

    monkeypatch.setattr(tempfile, "TemporaryDirectory", make)
    with metrics_directory() as directory:
        assert directory is not None
        assert str(directory.parent) == place
        assert directory.stat().st_mode & 0o777 == 0o700
    assert not directory.exists()
    place = "/nowhere"
    with metrics_directory() as directory:
        assert directory is None


def test_what_killed_services_left_behind_is_removed() -> None:
    """An hour later, at the next start; that of a service that runs is not."""
    with metrics_directory() as first:
        assert first is not None
        old = first.with_name(f"petstore-metrics-of-the-dead-{os.getpid()}")
        old.mkdir()
        (old / "1-x.counts").touch()
        hour_ago = first.stat().st_mtime - 3_700
        os.utime(old, (hour_ago, hour_ago))
        with metrics_directory():
            assert first.exists()
            assert not old.exists()


def left_by(worker: int) -> Path:
    """The directory in which it leaves numbers to others.

    The one written last: a killed service leaves its own behind, maybe from a process with the same number.
    """
    places = (Path("/dev/shm"), Path(tempfile.gettempdir()))
    written = [path for place in places for path in place.glob(f"petstore-metrics-*/{worker}-*.counts")]
    return max(written, key=lambda path: path.stat().st_mtime_ns).parent


def test_the_process_is_the_worker(server: Server) -> None:
    """The metrics have the worker's memory and start as the system has them."""
    (worker,) = server.workers()
    pages = int(Path(f"/proc/{worker}/statm").read_text().split()[1])
    resident = sample(server, "process_resident_memory_bytes")
    assert 0.5 < resident / (pages * resource.getpagesize()) < 2
    age = SystemClock().now_ms() / 1_000 - sample(server, "process_start_time_seconds")
    assert age == pytest.approx(age_of(worker), abs=5)


@pytest.mark.slow
def test_deliveries_of_the_background_process_are_shown(server: Server) -> None:
    """They are shown by outcome, with how the webhooks do; the counts go on when that process is
    another one."""

    def deliveries(outcome: str) -> float:
        return sample(server, f'petstore_webhook_deliveries_total{{outcome="{outcome}"}}')

    def webhooks(state: str) -> float:
        return sample(server, f'petstore_webhooks{{state="{state}"}}')

    with receiving() as receiver, server.client() as client:
        good = client.webhooks.create(receiver.address)
        bad = client.webhooks.create(f"{receiver.address}2")
        for number in range(3):
            client.pets.create(name=f"Animal {number}", category_id=1)
        wait_for(lambda: deliveries("delivered") >= 3 and deliveries("failed") >= 3, "the deliveries")
        wait_for(lambda: (webhooks("healthy"), webhooks("failing")) == (1, 1), "a look at the store")
        before = deliveries("delivered")
        os.kill((set(server.children()) - set(server.workers())).pop(), signal.SIGKILL)
        client.webhooks.test(good.id)
        wait_for(lambda: deliveries("delivered") > before, "a delivery of the next process")
        client.webhooks.delete(bad.id)
        wait_for(lambda: webhooks("failing") == 0, "a look at the store")
