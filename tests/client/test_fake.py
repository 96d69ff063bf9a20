"""The fake that users of the client test with: its ways in, failures on demand, time, and the sample."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from petstore_client import (
    ApiError,
    AsyncPetstore,
    NoAnswer,
    NotFound,
    Petstore,
    RateLimited,
)
from petstore_client.errors import BY_CODE
from petstore_client.testing import FakePetstore
from petstore_client.testing.clock import SteeredRuntime

from petstore.core.errors import BY_CODE as CATALOGUE
from tests.architecture.sources import ROOT
from tests.client.kit import Driven

PYTHON_CLIENT = ROOT / "clients" / "python"
Opened = Callable[..., Any]


@pytest.fixture
def fake() -> FakePetstore:
    return FakePetstore()


@pytest.fixture
def opened(kind: str, fake: FakePetstore) -> Iterator[Opened]:
    """Opens the fake's clients of this kind, by default with one try."""
    loop = asyncio.new_event_loop()

    def client(**options: Any) -> Any:
        made = fake.client() if kind == "sync" else Driven(fake.async_client(), loop)
        return made.with_options(**({"tries": 1} | options))

    yield client
    loop.close()


def test_every_error_can_be_ordered(fake: FakePetstore, opened: Opened) -> None:
    """Each code of the catalogue raises its class, with its status, as often as ordered and for its operation
    alone; nothing is changed but by outcome_unknown."""
    petstore = opened(seconds=0)
    fake.add_pet("Rex")
    for code, error in CATALOGUE.items():
        fake.fail_next(code, times=2, operation="createPet")
        petstore.pets.get(1)
        for _ in range(2):
            with pytest.raises(BY_CODE[code]) as raised:
                petstore.pets.create(name=code, category_id=1)
            assert raised.value.status == error.status
            fake.clock.advance(61)
        petstore.pets.get(1)
    assert [pet.name for pet in fake.pets] == ["Rex", "outcome_unknown", "outcome_unknown"]
    with pytest.raises(ValueError, match="'teapot' is none of"):
        fake.fail_next("teapot")


@pytest.mark.parametrize("failure", ["lost", "slow"])
def test_a_lost_answer_is_of_a_change_that_took_place(
    fake: FakePetstore, opened: Opened, failure: str
) -> None:
    """One try ends with an unknown outcome; with more, the repetition adds nothing twice."""
    fake.fail_next(failure)
    with pytest.raises(NoAnswer) as raised:
        opened().pets.create(name="once", category_id=1)
    assert raised.value.outcome_unknown
    fake.fail_next(failure, times=2)
    assert opened(tries=3).pets.create(name="twice", category_id=1).id == 2
    assert [pet.name for pet in fake.pets] == ["once", "twice"]
    assert len({request.headers["idempotency-key"] for request in fake.requests}) == 2
    assert fake.requests[-1].document == {"name": "twice", "categoryId": 1}
    assert fake.requests[-1].query == {}


def test_waits_move_the_clock(opened: Opened, fake: FakePetstore) -> None:
    """A Retry-After, the pause after a fault, and a time limit pass on the fake's clock."""
    petstore, began = opened(tries=3), fake.clock.now()
    fake.fail_next("key_banned")
    petstore.categories.list()
    assert fake.clock.now() - began == timedelta(seconds=60)
    fake.fail_next("slow")
    petstore.categories.list()
    assert timedelta(seconds=90) < fake.clock.now() - began < timedelta(seconds=92)
    with pytest.raises(ValueError, match="The clock does not go back"):
        fake.clock.advance(-1)


def test_limits_of_a_plan_are_waited_for() -> None:
    """Calls of many threads, and of many tasks, get what a minute has, and then go on in the next one."""
    fake = FakePetstore(plan="free")
    fake.add_pet()
    began, petstore = fake.clock.now(), fake.client()
    threads = [
        threading.Thread(target=lambda: [petstore.pets.get(1) for _ in range(30)], daemon=True)
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(fake.requests) == 120
    assert timedelta(seconds=59) < fake.clock.now() - began < timedelta(seconds=70)

    async def gather() -> None:
        async with fake.async_client() as client:
            await asyncio.gather(*[client.pets.get(1) for _ in range(120)])

    asyncio.run(gather())
    assert len(fake.requests) == 240
    assert timedelta(seconds=179) < fake.clock.now() - began < timedelta(seconds=200)
    impatient = fake.client().with_options(seconds=0)
    with pytest.raises(RateLimited):
        [impatient.usage() for _ in range(61)]


def test_a_call_on_its_way_stops_the_clock(fake: FakePetstore) -> None:
    """A wait ends by the clock only when no other call is between its own wait and its request."""
    began, runtime = fake.clock.now(), SteeredRuntime(fake.clock)
    ended = threading.Event()

    def wait() -> None:
        with runtime.call():
            runtime.wait(threading.Event(), 60)
        ended.set()

    with runtime.call():
        threading.Thread(target=wait, daemon=True).start()
        assert not ended.wait(0.1)
        assert fake.clock.now() == began
    assert ended.wait(60)
    assert fake.clock.now() - began == timedelta(seconds=60)


def test_it_can_be_followed(opened: Opened, fake: FakePetstore) -> None:
    """A follower gets what has happened. A request that would wait is answered at once, with Retry-After."""
    petstore = opened()
    fake.add_pet("Rex")
    fake.name_category(1, "Dogs")
    order = petstore.orders.place(1)
    petstore.orders.cancel(order.id)
    events = petstore.events.follow(after=None)
    assert [event.type for event in islice(events, 6)] == [
        *("pet.created", "category.updated", "order.created", "pet.updated"),
        *("order.updated", "pet.updated"),
    ]
    assert petstore.events.list(after=events.after, wait=120).retry_after_seconds == 5


def test_any_client_may_use_its_transport(fake: FakePetstore) -> None:
    """One that a program made itself, of both kinds."""
    with Petstore(fake.base_url, fake.key, transport=fake.transport) as petstore:
        petstore.pets.create(name="Rex", category_id=1)

    async def read() -> None:
        async with AsyncPetstore(fake.base_url, fake.key, transport=fake.transport) as client:
            assert (await client.pets.get(1)).name == "Rex"
            with pytest.raises(NotImplementedError, match="no webhooks"):
                await client.webhooks.list()

    asyncio.run(read())


def test_other_programs_speak_http_to_it(fake: FakePetstore) -> None:
    """Answers, a lost one, one that comes too late, what it has not, and any method; the server ends with the
    block."""
    with fake.serve() as base_url:
        host = urlsplit(base_url).netloc
        with Petstore(base_url, fake.key, tries=1, timeout=0.5) as petstore:
            assert petstore.pets.create(name="Søren", category_id=1) == fake.pets[0]
            with pytest.raises(NotFound):
                petstore.pets.get(2)
            for failure in ("lost", "slow"):
                fake.fail_next(failure)
                with pytest.raises(NoAnswer):
                    petstore.pets.create(name=failure, category_id=1)
            with pytest.raises(ApiError) as raised:
                petstore.webhooks.list()
            assert (raised.value.status, raised.value.code) == (501, "not_implemented")
        assert len(fake.pets) == 3
        headers = {"Authorization": f"Bearer {fake.key}"}
        first = httpx2.head(f"{base_url}/v1/pets", headers=headers, trust_env=False)
        assert (first.status_code, first.content, first.headers["content-type"]) == (
            200,
            b"",
            "application/json",
        )
        idle = http.client.HTTPConnection(host)
        idle.request("GET", "/v1/pets", headers=headers)
        assert len(json.loads(idle.getresponse().read())) == 3
        for method, status in (("FOO-BAR", 405), ("TRACE", 405), ("OPTIONS", 204)):
            idle.request(method, "/v1/pets", headers=headers)
            answer = idle.getresponse()
            assert (answer.status, answer.headers["allow"]) == (status, "GET, HEAD, OPTIONS, POST")
            answer.read()
        pieces = (b'{"name":"Bo",', b'"categoryId":1}')
        idle.request("POST", "/v1/pets", iter(pieces), {**headers, "Content-Type": "application/json"})
        assert json.loads(idle.getresponse().read())["name"] == "Bo"
        idle.request("GET", "//v1/pets", headers=headers)
        assert idle.getresponse().status == 404
    now = fake.clock.now()
    with pytest.raises(ConnectionError):
        http.client.HTTPConnection(host).request("GET", "/v1/pets")
    idle.close()
    assert fake.clock.now() == now


def run(*command: str, cwd: Path) -> str:
    """What a program of this Python says; it must end well."""
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, capture_output=True, text=True, check=False, timeout=150
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_sample_of_the_readme_is_typed_and_passes(tmp_path: Path) -> None:
    """The distribution names the plugin, which imports nothing of the client by itself."""
    readme = (PYTHON_CLIENT / "README.md").read_text(encoding="utf-8")
    [sample] = re.findall(r"## Test against it\n.*?```python\n(.*?)```", readme, re.DOTALL)
    (tmp_path / "test_sample.py").write_text(sample, encoding="utf-8")
    project = tomllib.loads((PYTHON_CLIENT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    [[name, module]] = project["entry-points"]["pytest11"].items()
    assert name == module  # so that pytest registers it once under any name
    imported = (
        f"import sys, {module}; print([*filter({{'petstore_client', 'httpx2'}}.__contains__, sys.modules)])"
    )
    assert run("-c", imported, cwd=tmp_path) == "[]\n"
    said = run("-m", "pytest", "-q", "-p", module, "-p", "no:cacheprovider", "test_sample.py", cwd=tmp_path)
    assert re.search(r"\b1 passed", said)
    cache = ["--cache-dir", str(ROOT / ".mypy_cache" / "samples")]
    run("-m", "mypy", "--strict", *cache, "test_sample.py", cwd=tmp_path)
