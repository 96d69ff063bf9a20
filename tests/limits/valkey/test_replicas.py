"""Two replicas on one PostgreSQL and one Valkey: what one of them acknowledged, the other knows (I5, I14).

Both run in this process, beside a real PostgreSQL and Valkey. An added animal, a revoked key, replicas
that die or are replaced: tests/e2e/test_cluster.py, with processes.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from petstore import config
from petstore.core.clock import SystemClock
from petstore.core.keys import Access
from petstore.core.pets import NewPet
from petstore.limiter.valkey.client import ValkeyClient
from petstore.limiter.valkey.scripts import Script
from petstore.storage.store import Store
from petstore.wiring.administration import backend_of, store_for_command
from petstore.wiring.application import Application
from tests.support.journal import ACTOR
from tests.support.postgres import fresh_database
from tests.support.service import Answer, Shop
from tests.support.stock import stock_row
from tests.support.valkey import Client, ValkeyServer
from tests.support.waiting import until


class Killed(BaseException):
    """A process that is killed does nothing further."""


class Pair:
    """Two replicas; the first one's shop has the key, which both know."""

    def __init__(self, settings: config.Settings, valkey: ValkeyServer) -> None:
        self.settings = settings
        self.valkey = valkey
        self.shops: list[Shop] = []
        self.reads = 0

    @property
    def one(self) -> Shop:
        return self.shops[0]

    @property
    def other(self) -> Shop:
        return self.shops[1]

    async def start(self) -> None:
        for _ in range(2):
            application = Application(self.settings, SystemClock())
            await application.start()
            shop = Shop(application, None, None, steers_counters=False)  # type: ignore[arg-type]
            self.shops.append(shop)
            self._count_reads(application.service.store)
        self.one.key, self.one.key_id = await self.one.open_account(
            "tests", "enterprise", 10**6, 10**7, Access.MANAGE
        )
        self.other.key = self.one.key

    def _count_reads(self, store: Any) -> None:
        read = store.pets.page

        async def page(query: Any) -> Any:
            self.reads += 1
            return await read(query)

        store.pets.page = page

    async def stop(self) -> None:
        for shop in self.shops:
            await shop.application.stop()

    async def settled(self) -> None:
        """Both replicas keep the page, within one lease."""
        async with asyncio.timeout(30):
            while True:
                before = self.reads
                for shop in (*self.shops, *self.shops):
                    assert (await shop.ask("GET", "/v1/pets")).status == 200
                if self.reads == before:
                    return


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    with ValkeyServer().start() as server:
        yield server


@pytest.fixture
async def pair(valkey: ValkeyServer) -> AsyncIterator[Pair]:
    """More patient than by default, since the machine of a test may be busy."""
    valkey.client("FLUSHALL")
    with fresh_database(migrated=True) as database:
        environment = {
            "PETSTORE_DATABASE_URL": database,
            "PETSTORE_VALKEY_URL": valkey.url,
            "PETSTORE_DATABASE_POOL": "4",
            "PETSTORE_ACCESS_LOG": "off",
            "PETSTORE_REPLICAS": "2",
            "PETSTORE_VALKEY_TIMEOUT": "400ms",
        }
        opened = Pair(config.load(environment), valkey)
        await opened.start()
        yield opened
        await opened.stop()


@asynccontextmanager
async def command(settings: config.Settings, said: list[str]) -> AsyncIterator[Store]:
    """The store as a command of the command line has it."""
    async with store_for_command(settings, backend_of(settings), SystemClock(), said.append) as store:
        yield store


def names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.body
    return [pet["name"] for pet in answer.json()]


class TestReadYourWrite:
    """The next request sees it, whoever is asked."""

    async def test_a_stock_list_is_in_the_next_list_of_both(self, pair: Pair) -> None:
        """Both replicas show a stock list once it is stored, and use what they keep while it is prepared."""
        await pair.one.post({"name": "Rex", "categoryId": 1})
        async with command(pair.settings, []) as store, store.stock.importing(ACTOR, None) as load:
            await load.stage([stock_row(1, None, "Mia", 1, None)])
            await load.plan()
            await pair.settled()
            assert await load.store() is not None
            for shop in pair.shops:
                assert names(await shop.ask("GET", "/v1/pets")) == ["Rex", "Mia"]

    async def test_what_is_kept_is_used(self, pair: Pair) -> None:
        """A page is read once in a lease, and a key too, on each replica, unless something changes."""
        await pair.one.post({"name": "Rex", "categoryId": 1})
        await pair.settled()
        before = pair.reads
        for _ in range(50):
            for shop in pair.shops:
                assert names(await shop.ask("GET", "/v1/pets")) == ["Rex"]
        assert pair.reads - before <= 4  # a lease may have ended meanwhile

    async def test_under_load_no_answer_is_older_than_its_request(self, pair: Pair) -> None:
        """Writers through both, readers through both: each answer has at least what was acknowledged before
        the request was made."""
        acknowledged: list[int] = []

        async def write(shop: Shop, name: str) -> None:
            for _ in range(20):
                answer = await shop.post({"name": name, "categoryId": 1})
                assert answer.status == 201
                acknowledged.append(answer.json()["id"])

        async def read(shop: Shop) -> None:
            while len(acknowledged) < 80:
                floor = set(acknowledged)
                answer = await shop.ask("GET", "/v1/pets?limit=100")
                assert answer.status == 200
                assert floor <= {pet["id"] for pet in answer.json()}

        readers = [asyncio.create_task(read(shop)) for shop in pair.shops for _ in range(4)]
        await asyncio.gather(*(write(shop, name) for shop in pair.shops for name in "ab"))
        await asyncio.gather(*readers)

    async def test_a_change_and_a_removal_through_one(self, pair: Pair) -> None:
        """Both keep the page: from the 200 and the 204 on neither answers from it."""
        for number in range(4):
            writer = pair.shops[number % 2]
            pet_id = (await writer.post({"name": "Rex", "categoryId": 1})).json()["id"]
            await pair.settled()
            assert (await writer.patch(pet_id, {"name": f"n{number}"})).status == 200
            for shop in pair.shops:
                assert names(await shop.ask("GET", "/v1/pets")) == [f"n{number}"]
            await pair.settled()
            assert (await writer.ask("DELETE", f"/v1/pets/{pet_id}")).status == 204
            for shop in pair.shops:
                assert names(await shop.ask("GET", "/v1/pets")) == []

    async def test_an_order_and_its_cancellation_through_one(self, pair: Pair) -> None:
        """Both keep the page: from each answer on both show the animal's status. With an Idempotency-Key, as
        the client sends it, and without."""

        async def statuses() -> list[list[str]]:
            pages = [await shop.ask("GET", "/v1/pets") for shop in pair.shops]
            return [[pet["status"] for pet in page.json()] for page in pages]

        for before, keys in (
            ([], [[], []]),
            (["available"], [[("idempotency-key", "1")], [("idempotency-key", "2")]]),
        ):
            writer, (of_pet, of_order) = pair.shops[len(before)], keys
            await pair.settled()
            pet_id = (await writer.post({"name": "Rex", "categoryId": 1}, of_pet)).json()["id"]
            assert await statuses() == [[*before, "available"]] * 2
            await pair.settled()
            placed = await writer.send("POST", "/v1/store/orders", {"petId": pet_id}, of_order)
            assert await statuses() == [[*before, "pending"]] * 2
            await pair.settled()
            order_id = placed.json()["id"]
            assert (await writer.ask("DELETE", f"/v1/store/orders/{order_id}")).status == 204
            assert await statuses() == [[*before, "available"]] * 2


class TestKeys:
    """A change of a key acts on its next request, on every replica."""

    async def test_suspended_resumed_and_closed(self, pair: Pair) -> None:
        """Both have kept the key; each change is acknowledged by one of them or by a command."""
        said: list[str] = []
        async with command(pair.settings, said) as commands:
            for turn, store in enumerate((pair.one.store, pair.other.store, commands)):
                name = f"account-{turn}"
                secret, _ = await pair.one.open_account(name)
                accounts = store.accounts
                for change, status in (
                    (accounts.suspend, 403),
                    (accounts.resume, 200),
                    (accounts.suspend, 403),
                    (accounts.resume, 200),
                    (accounts.close, 401),
                ):
                    await change(name, ACTOR)
                    for shop in (*pair.shops, *pair.shops):
                        assert (await shop.ask("GET", "/v1/pets", key=secret)).status == status
        assert said == []

    async def test_no_request_passes_after_a_suspension(self, pair: Pair) -> None:
        """Callers through both replicas, all the while: those that begin after the acknowledgement are
        refused, and the account has paid for exactly those that passed."""
        secret, _ = await pair.one.open_account("busy", "enterprise", 10**6, 10**7)
        suspensions, in_force, ended, passed = 0, False, False, 0

        async def call(shop: Shop) -> None:
            nonlocal passed
            while not ended:
                began = (suspensions, in_force)
                answer = await shop.ask("GET", "/v1/pets", key=secret)
                always = in_force and began == (suspensions, in_force)
                assert answer.status in ({403} if always else {200, 403})
                passed += answer.status == 200

        def more_than(number: int) -> Callable[[], bool]:
            return lambda: passed > number

        callers = [asyncio.create_task(call(shop)) for shop in pair.shops for _ in range(4)]
        while suspensions < 3:
            await until(more_than(passed + 100))
            await pair.other.store.accounts.suspend("busy", ACTOR)
            suspensions, in_force = suspensions + 1, True
            for shop in (*pair.shops, *pair.shops):
                assert (await shop.ask("GET", "/v1/pets", key=secret)).status == 403
            in_force = False
            await pair.one.store.accounts.resume("busy", ACTOR)
        ended = True
        await asyncio.gather(*callers)
        answer = await pair.one.ask("GET", "/v1/pets", key=secret)
        assert int(answer.headers["ratelimit"].split("r=")[-1].split(";")[0]) == 10**7 - passed - 1

    async def test_failed_authentications_of_an_address_are_shared_out(self, pair: Pair) -> None:
        """Each of the two counts by itself, so each grants half of the 600 a minute."""
        for shop in pair.shops:
            answer = await shop.call("GET", "/v1/pets")
            assert (answer.status, answer.headers["ratelimit-policy"]) == (401, '"address";q=300;w=60')


async def test_after_the_death_of_a_writer_the_others_read_the_store(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that dies after its commit told nobody of its animal: no page is used until its time is up."""
    await pair.settled()
    call = ValkeyClient.call

    async def die(self: ValkeyClient, script: Script, evalsha: bytes) -> Any:
        if b"complete" in evalsha:
            raise Killed
        return await call(self, script, evalsha)

    monkeypatch.setattr(ValkeyClient, "call", die)
    with pytest.raises(Killed):
        await pair.one.store.pets.add(NewPet("Rex", 1), ACTOR)
    monkeypatch.undo()
    for _ in range(5):
        assert names(await pair.other.ask("GET", "/v1/pets")) == ["Rex"]


class TestAnOutage:
    """Valkey is gone, hangs or forgets everything: requests go on, and see what was acknowledged."""

    async def test_read_your_write_through_an_outage_of_all(self, pair: Pair) -> None:
        """Hanging: neither replica uses a page, and afterwards none from before."""
        await pair.settled()
        pair.valkey.signal(signal.SIGSTOP)
        try:
            for number in range(4):
                answer = await pair.shops[number % 2].post({"name": f"n{number}", "categoryId": 1})
                assert answer.status == 201
                for shop in pair.shops:
                    assert len(names(await shop.ask("GET", "/v1/pets"))) == number + 1
        finally:
            pair.valkey.signal(signal.SIGCONT)
        for _ in range(50):
            for shop in pair.shops:
                assert len(names(await shop.ask("GET", "/v1/pets"))) == 4

    async def test_a_suspension_through_an_outage_of_all(self, pair: Pair, slept: list[float]) -> None:
        """Hanging: it acts on the next request all the same, and on those after the outage."""
        secret, _ = await pair.one.open_account("shop")
        for shop in (*pair.shops, *pair.shops):
            assert (await shop.ask("GET", "/v1/pets", key=secret)).status == 200
        pair.valkey.signal(signal.SIGSTOP)
        try:
            await pair.one.store.accounts.suspend("shop", ACTOR)
            assert slept == [5.0]
            for shop in (*pair.shops, *pair.shops):
                assert (await shop.ask("GET", "/v1/pets", key=secret)).code == "account_suspended"
        finally:
            pair.valkey.signal(signal.SIGCONT)
        for _ in range(20):
            for shop in pair.shops:
                assert (await shop.ask("GET", "/v1/pets", key=secret)).status == 403

    async def test_an_emptied_valkey(self, pair: Pair) -> None:
        """FLUSHALL between two requests: no page from before is used, no quota is handed out afresh."""
        secret, _ = await pair.one.open_account("small")
        for shop in pair.shops:
            for _ in range(10):
                assert (await shop.ask("GET", "/v1/pets", key=secret)).status == 200
        for shop in pair.shops:
            await shop.application.service.flusher.save()
        Client(pair.valkey.url)("FLUSHALL")
        answer = await pair.other.ask("GET", "/v1/pets", key=secret)
        assert answer.headers["x-ratelimit-remaining"] == "39"

    @pytest.mark.parametrize(("outage", "status"), [("share", 200), ("refuse", 503)])
    async def test_readiness_says_whether_requests_are_served(
        self, pair: Pair, outage: str, status: int
    ) -> None:
        """A replica that refuses requests wants no traffic, one that grants a share does. Both say so."""
        settings = msgspec.structs.replace(pair.settings, limiter_outage=outage)
        application = Application(settings, SystemClock())
        await application.start()
        shop = Shop(application, None, None, steers_counters=False)  # type: ignore[arg-type]
        metrics = application.service.endpoints._metrics
        pair.valkey.kill()
        try:
            await until(lambda: metrics.in_outage)
            answer = await shop.call("GET", "/readyz")
            assert answer.status == status
            assert answer.json()["checks"]["counters"].startswith("out of reach, ")
        finally:
            pair.valkey.start()
        await until(lambda: not metrics.in_outage)
        answer = await shop.call("GET", "/readyz")
        assert (answer.status, answer.json()["checks"]["counters"]) == (200, "ok")
        await application.stop()

    @pytest.fixture
    def slept(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """How long commands, and changes of keys, have waited, which takes no time here."""
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)

        # Only there: the service's own rounds go on by the clock.
        only = SimpleNamespace(sleep=sleep, get_running_loop=asyncio.get_running_loop)
        for module in ("wiring.administration", "limiter.valkey.publisher"):
            monkeypatch.setattr(f"petstore.{module}.asyncio", only)
        return waits

    async def test_a_command_waits_the_lease_out(self, pair: Pair, slept: list[float]) -> None:
        """It commits, says why it waits, waits, and only then is done."""
        said: list[str] = []
        settings = msgspec.structs.replace(pair.settings, valkey_url="unix:///nonexistent/socket")
        async with command(settings, said) as store:
            await store.keys.revoke(pair.one.key_id, ACTOR)
        assert slept == [5.0]
        assert "Valkey can't be reached (it can't be connected to: " in said[0]

    async def test_a_command_that_was_not_told_of_valkey_waits_too(
        self, pair: Pair, slept: list[float]
    ) -> None:
        """The database says that replicas share a Valkey; once a process serves without, nothing waits."""
        said: list[str] = []
        settings = config.load({"PETSTORE_DATABASE_URL": pair.settings.database_url})
        async with command(settings, said) as store:
            await store.keys.revoke(pair.one.key_id, ACTOR)
        assert slept == [5.0]
        assert "PETSTORE_VALKEY_URL is not set here" in said[0]
        alone = Application(settings, SystemClock())
        await alone.start()
        await alone.stop()
        async with command(settings, said) as store:
            await store.keys.issue("tests", "till", ACTOR)
        assert (slept, len(said)) == ([5.0], 1)
        await pair.one.store.purge(0)
        async with command(settings, said) as store:
            await store.keys.issue("tests", "till", ACTOR)
        assert (slept, len(said)) == ([5.0, 5.0], 2)
