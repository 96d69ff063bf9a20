"""The background process of a service: whatever is killed, a stock list is stored once; bans are told."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from petstore import config
from petstore.core.clock import SystemClock
from petstore.core.moments import iso_moment
from petstore.core.pets import PetQuery
from petstore.core.uploads import Upload, UploadState
from petstore.storage.store import Store
from petstore.wiring.administration import backend_of
from petstore.wiring.application import Application
from tests.console.test_stock_lists import names, send, worked_on
from tests.support import postgres
from tests.support.backends import execute_at, opened_store
from tests.support.console import Visitor
from tests.support.jobs import keep_list
from tests.support.postgres import fresh_database
from tests.support.server import Server, running_server, start_server
from tests.support.service import Shop
from tests.support.valkey import emptied_url
from tests.support.waiting import PATIENCE_SECONDS, pause
from tools.servers.child import background

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ROWS, KILLS = 4_000, 3
ANNA = "console:anna"
LIST = b"name,categoryId\n" + b"".join(b"Rex %d,1\n" % number for number in range(ROWS))


ON_SQLITE = pytest.mark.parametrize("url", ["sqlite"], indirect=True)


@pytest.fixture
def server(url: str, tmp_path: Path) -> Iterator[Server]:
    with running_server(tmp_path, database_url=url, ban_minimum_rejections="2", ban_grace="100ms") as server:
        yield server


@pytest.fixture
async def store(url: str, server: Server) -> AsyncIterator[Store]:
    """Beside the server."""
    async with opened_store(url) as store:
        yield store


def end_leases(url: str) -> None:
    """30 seconds later, and as if the kills did not count as faults of the job."""
    execute_at(url, "UPDATE jobs SET deadline_ms = 0, attempts = 0")


async def wait_for(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():
            await asyncio.to_thread(pause, 0.05)


async def background_of(server: Server) -> int:
    """The process, which begins once the workers serve."""
    await wait_for(lambda: len(background(server.pid)) == 1)
    return background(server.pid)[0]


async def until(store: Store, upload_id: int, state: UploadState) -> Upload:
    """The list, once the server's background process has brought it there."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (upload := await store.uploads.get(upload_id)).state is not state:
            await asyncio.to_thread(pause, 0.05)
    return upload


async def names_of(store: Store) -> list[str]:
    return [pet.name for pet in (await store.pets.page(PetQuery(10_000))).pets]


async def test_a_killed_process_has_stored_all_or_nothing(url: str, server: Server, store: Store) -> None:
    """SIGKILL at random moments, without source keys: the one that takes its place stores the list once, and
    does not need the workers."""
    chance = random.Random(int(os.environ.get("TEST_SEED", "7")))
    upload_id = await keep_list(store, LIST, ANNA)
    upload = await until(store, upload_id, UploadState.CHECKED)
    await store.uploads.ask(upload_id, UploadState.STORING, ANNA, expected_run=upload.run)
    victims = server.workers()  # one that dies twice within seconds ends the service
    for _ in range(KILLS):
        await wait_for(lambda: bool(background(server.pid)))
        await asyncio.to_thread(pause, chance.uniform(0.1, 1.0))
        for pid in (*background(server.pid), *victims):
            os.kill(pid, signal.SIGKILL)
        victims = []
        stored = (await store.uploads.get(upload_id)).state is UploadState.STORED
        assert len(await names_of(store)) == (ROWS if stored else 0)
        end_leases(url)
    await until(store, upload_id, UploadState.STORED)
    assert await names_of(store) == [f"Rex {number}" for number in range(ROWS)]
    server.wait_until_ready()
    await wait_for(lambda: b"petstore_background_up 1.0" in server.request("GET", "/metrics").body)


@pytest.mark.parametrize("victim", ["workers", "replica"])
async def test_a_kill_beside_another_replica(victim: str, tmp_path: Path) -> None:
    """A list that one of two replicas on PostgreSQL and Valkey is storing when it is killed is stored once,
    and the other replica shows it at once."""
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    with fresh_database() as url, ExitStack() as running:
        shared = {"database_url": url, "valkey_url": emptied_url()}
        one, other = [running.enter_context(running_server(folder, **shared)) for folder in folders]
        store = backend_of(config.load({"PETSTORE_DATABASE_URL": url})).open(SystemClock())
        upload_id = await keep_list(store, LIST, ANNA)
        upload = await until(store, upload_id, UploadState.CHECKED)
        first = "/v1/pets?limit=1"
        assert [each.request("GET", first, key=one.key).json() for each in (one, other)] == [[], []]
        idle = await background_of(other)
        os.kill(idle, signal.SIGSTOP)  # so the one that is killed has the job
        await store.uploads.ask(upload_id, UploadState.STORING, ANNA, expected_run=upload.run)
        await wait_for(lambda: postgres.run(url, "SELECT 1 FROM jobs WHERE attempts = 0") == [])
        for pid in [one.pid] if victim == "replica" else one.workers():
            os.kill(pid, signal.SIGKILL)
        end_leases(url)
        os.kill(idle, signal.SIGCONT)
        await until(store, upload_id, UploadState.STORED)
        assert await names_of(store) == [f"Rex {number}" for number in range(ROWS)]
        assert other.request("GET", first, key=one.key).json()[0]["name"] == "Rex 0"
        await store.close()


@ON_SQLITE
async def test_a_killed_parent(url: str, server: Server, store: Store, tmp_path: Path) -> None:
    """The background process ends with it, and that of the next start goes on where it was."""
    upload_id = await keep_list(store, LIST, ANNA)
    upload = await until(store, upload_id, UploadState.CHECKED)
    await store.uploads.ask(upload_id, UploadState.STORING, ANNA, expected_run=upload.run)
    left = server.children()
    os.kill(server.pid, signal.SIGKILL)
    await wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left))
    end_leases(url)
    again = start_server(tmp_path, database_url=url)
    try:
        await until(store, upload_id, UploadState.STORED)
        assert await names_of(store) == [f"Rex {number}" for number in range(ROWS)]
    finally:
        again.kill()


@ON_SQLITE
async def test_a_stop_and_a_reload(url: str, server: Server, store: Store) -> None:
    """Both give the job up at once, without an attempt that counts; nobody waits for the end of the lease."""
    upload_id = await keep_list(store, LIST * 20, ANNA)
    before = await background_of(server)
    os.kill(server.pid, signal.SIGHUP)
    await wait_for(lambda: before not in server.children() and bool(background(server.pid)))
    upload = await until(store, upload_id, UploadState.CHECKED)
    assert upload.counts is not None
    assert upload.counts.read == 20 * ROWS + 19
    assert server.terminate() == 0


@ON_SQLITE
async def test_an_account_hears_of_a_ban(server: Server, store: Store) -> None:
    """One key runs into it; another one of the account follows the events."""
    follower = (await store.keys.issue("local", "test", ANNA)).secret
    follow = partial(server.request, "GET", key=follower, timeout=3 * PATIENCE_SECONDS)
    bookmark = follow("/v1/events?after=now").headers["link"].partition("after=")[2].partition(">")[0]
    heard = asyncio.create_task(
        asyncio.to_thread(follow, f"/v1/events?wait=60&type=key.banned&after={bookmark}")
    )

    await wait_for(lambda: b"petstore_events_waiting 1.0" in server.request("GET", "/metrics").body)

    def run_into_it() -> None:
        while b"key_banned" not in server.request("GET", "/v1/pets").body:
            pass

    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.to_thread(run_into_it)
    (event,) = (await heard).json()
    (ban,) = await store.usage.bans(SystemClock().now_ms())
    assert event["data"] == {
        "id": 1,
        "bannedUntil": iso_moment(ban.banned_until_ms),
        "previous": {"bannedUntil": None},
    }


@pytest.fixture
async def shops() -> AsyncIterator[list[Shop]]:
    """Two services that share a PostgreSQL and a Valkey."""
    with fresh_database() as url:
        environment = {
            "PETSTORE_DATABASE_URL": url,
            "PETSTORE_VALKEY_URL": emptied_url(),
            "PETSTORE_ACCESS_LOG": "off",
        }
        opened = []
        for _ in range(2):
            application = Application(config.load(environment))
            await application.start()
            shop = Shop(application, None, None, steers_counters=False)  # type: ignore[arg-type]
            opened.append(shop)
        opened[0].key, _ = await opened[0].open_account("tests", "enterprise", 10**6, 10**7)
        yield opened
        for shop in opened:
            await shop.application.stop()


async def test_sent_to_one_and_stored_on_the_other(shops: list[Shop]) -> None:
    """A session is good on both; what one of them stores, the other's next page has."""
    one, other = shops
    staff = await Visitor(one).sign_in_as("staff")
    assert (await one.ask("GET", "/v1/pets")).json() == []
    shown = await worked_on(await send(staff), staff)
    staff.shop = other
    shown = await worked_on(await staff.submit(shown, "/store"), staff)
    staff.shop = one
    assert "Added 2" in (await worked_on(shown, staff)).text
    assert [pet["name"] for pet in (await one.ask("GET", "/v1/pets")).json()] == await names(other)


@pytest.mark.parametrize(("stage", "sends"), [("production", False), ("staging", True)])
async def test_a_worker_does_not_wait_for_what_sends_webhooks(
    tmp_path: Path, stage: str, sends: bool
) -> None:
    """The import of that takes a quarter of the start. Staging's workers send webhooks, so they begin with
    it: the program on the disk may be another one by then."""

    def has_loaded(pid: int) -> bool:
        return "/aiohttp/" in Path(f"/proc/{pid}/maps").read_text()

    with running_server(tmp_path, stage=stage) as server:
        sender = await background_of(server)
        assert [has_loaded(pid) for pid in (*server.workers(), sender)] == [sends, True]
