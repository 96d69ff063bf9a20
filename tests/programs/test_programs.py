"""Programs as a developer writes them from the pages that the service serves, against staging.

They speak to it by its clients alone: what they would need raw HTTP for is missing in a client.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from petstore_client import Petstore

from petstore.core.keys import Access
from tests.docs.documents import fences
from tests.support.machine import program as tool
from tests.support.outside import run_tool
from tests.support.server import Server, issue_key, running_server
from tests.support.waiting import wait_for
from tools.servers.petstore import run

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FOLDER = Path(__file__).parent
TYPESCRIPT = FOLDER.parent / "consumers" / "typescript"
# Runs animals.mjs behind a proxy that loses connections.
LOSSY = """
import "./hurried.mjs";
import { lossy } from "./lossy.mjs";
const { address, dropped, end } = await lossy(process.env.PETSTORE_URL, 7);
process.env.PETSTORE_URL = address;
await import("./animals.mjs");
console.log(JSON.stringify(dropped));
end();
"""
RAW = re.compile(r"\b(httpx2?|requests|urllib|aiohttp|socket|http\.client|fetch\(|node:https?)")


@contextmanager
def staging(folder: Path, animals: int) -> Iterator[Server]:
    """A service of staging with so many animals; its key manages the store."""
    key = issue_key(folder / "petstore.db", "staff", access=Access.MANAGE)
    with running_server(folder, stage="staging", access_log="off") as server:
        server.key = key
        refresh(server, seed=1, animals=animals)
        yield server


def refresh(server: Server, *, seed: int, animals: int) -> None:
    """Put other animals in the place of all."""
    words = ("staging", "refresh", "--seed", str(seed), "--animals", str(animals))
    done = run(*words, settings=server.settings)
    assert done.returncode == 0, done.stderr


@contextmanager
def program(*command: str | Path, server: Server, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """A program of this folder, ended with the block."""
    environment = os.environ | {"PETSTORE_URL": f"{server.base_url}/v1", "PETSTORE_KEY": server.key}
    with subprocess.Popen(
        [sys.executable, *command], cwd=FOLDER, env=environment | variables, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_nothing_needs_raw_http() -> None:
    """The clients have all that the programs do."""
    for name in ("shop.py", "mirror.py", "animals.mjs"):
        assert RAW.findall((FOLDER / name).read_text(encoding="utf-8")) == [], name


Shop = tuple[Petstore, httpx2.Client]
GROUP = pytest.mark.xdist_group("web-shop")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A store with some fifty animals of each category, and a visitor of shop.py on Flask's own server."""
    folder = tmp_path_factory.mktemp("shop")
    key = issue_key(folder / "petstore.db", "shop")
    with staging(folder, 250) as server, server.client() as store:
        keys = {"PETSTORE_KEY": key, "PETSTORE_STAFF_KEY": server.key}
        flask = ("-m", "flask", "--app", "shop", "run", "--port", "0")
        with program(*flask, server=server, **keys) as process:
            assert process.stderr is not None
            address = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
            with httpx2.Client(base_url=address, trust_env=False, follow_redirects=True) as visitor:
                yield store, visitor


@GROUP
def test_the_shop_leads_through_all_pages(shop: Shop) -> None:
    """Twenty animals on each page of a category but the last; `next` leads to each of them once."""
    store, visitor = shop
    dogs = re.search(r'href="(\S+)">Dogs<', visitor.get("/").text)
    address, pages = dogs[1] if dogs else "", []
    while address:
        page = visitor.get(address).text
        pages.append(re.findall(r"/animals/(\d+)/order", page))
        following = re.search(r'rel="next" href="(\S+)"', page)
        address = following[1].replace("&amp;", "&") if following else ""
    assert [len(each) for each in pages[:-1]] == [20] * (len(pages) - 1)
    listed = [pet.id for pet in store.pets.list(status="available", category_id=1)]
    assert [int(number) for page in pages for number in page] == listed
    assert len(pages) > 1


@GROUP
def test_the_shop_delivers(shop: Shop) -> None:
    """The shopper orders, the store's side approves and delivers; the animal is sold."""
    store, visitor = shop
    pet = store.pets.page(status="available", limit=1).items[0]
    assert "Thank you" in visitor.post(f"/animals/{pet.id}/order").text
    for status in ("placed", "approved"):
        page = visitor.get("/staff/orders").text
        assert f"shop: {status}" in page
        action = re.search(r'action="(\S+)"', page)
        assert action is not None
        assert visitor.post(action[1], data={"status": status}).status_code == 200
    assert "shop" not in visitor.get("/staff/orders").text
    assert store.pets.get(pet.id).status == "sold"


@GROUP
def test_the_shop_says_who_was_faster(shop: Shop) -> None:
    """The shopper sees 409, with the reason. A wrong cursor is 400."""
    store, visitor = shop
    pet = store.pets.page(status="available", limit=1).items[0]
    store.orders.place(pet.id)
    late = visitor.post(f"/animals/{pet.id}/order")
    assert (late.status_code, "Somebody was faster." in late.text) == (409, True)
    assert visitor.get("/categories/1?cursor=x").status_code == 400


def test_a_mirror_ends_with_what_the_store_has(tmp_path: Path) -> None:
    """mirror.py sees changes and removals, over a restart of the service, its own end, and a store with other
    animals, of which `EventsGone` tells."""
    place = tmp_path / "mirror.json"

    def mirrored() -> bool:
        return place.exists() and json.loads(place.read_text() or "[0, 0]")[1] == {
            str(pet.id): {"id": pet.id, "name": pet.name, "categoryId": pet.category_id, "status": pet.status}
            for pet in client.pets.list()
        }

    def change() -> None:
        first, second, *_ = client.pets.list(status="available")
        client.pets.update(first.id, name="Changed")
        client.pets.delete(second.id)
        client.pets.create(name="New", category_id=5)

    with staging(tmp_path, 40) as server, server.client() as client:
        with program("mirror.py", place, server=server):
            wait_for(mirrored, "the first list")
            change()
            wait_for(mirrored, "the first changes")
            server.terminate()
            server.start()
            change()
            wait_for(mirrored, "the changes after a restart of the service")
        change()
        with program("mirror.py", place, server=server):
            wait_for(mirrored, "the changes while it was away")
            refresh(server, seed=2, animals=30)
            change()  # what waits for an event hears of the other animals with it
            wait_for(mirrored, "other animals")


def test_two_hundred_animals_through_a_network_that_loses_a_third(tmp_path: Path) -> None:
    """animals.mjs, with the client as the page installs it, without an index of packages. 15 % of connections
    break before the service is asked, 20 % after it has answered: each animal is added, and once."""
    node = tool("node")
    tool("npm")
    for file in (FOLDER / "animals.mjs", *(TYPESCRIPT / f"{name}.mjs" for name in ("hurried", "lossy"))):
        shutil.copy(file, tmp_path)
    with staging(tmp_path, 1) as server:
        page = server.request("GET", "/docs/clients.md").body.decode()
        line = next(code for language, code in fences(page) if language == "sh" and code.startswith("npm "))
        nobody = {"npm_config_registry": "http://127.0.0.1:1", "npm_config_cache": str(tmp_path / "cache")}
        done = run_tool(["sh", "-c", line], tmp_path, **nobody)
        assert done.returncode == 0, done.stderr
        variables = {"PETSTORE_URL": server.base_url, "PETSTORE_KEY": server.key}
        done = run_tool([node, "--input-type=module", "-e", LOSSY], tmp_path, **variables)
        assert done.returncode == 0, done.stderr
        added, lost = map(json.loads, done.stdout.splitlines())
        with server.client() as client:
            pets = list(client.pets.list(category_id=77))
    assert sorted(pet.id for pet in pets) == sorted(added)
    assert sorted(pet.name for pet in pets) == sorted(f"Animal {number}" for number in range(200))
    assert min(lost.values()) > 30, lost
