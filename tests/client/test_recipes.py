"""The recipes in clients/python/recipes: apps that hold one client, against the fake over HTTP."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

import httpx2
import pytest
from petstore_client.testing import FakePetstore
from starlette.testclient import TestClient

from tests.architecture.sources import ROOT
from tests.client.test_receivers import SERVES, loaded, process

FOLDER = ROOT / "clients" / "python" / "recipes"
Get = Callable[[str], httpx2.Response]


@contextmanager
def wsgi(name: str) -> Iterator[Get]:
    """The app of a synchronous framework, in a process of its own, for which Django sets the time zone."""
    with process(FOLDER, sys.executable, "-c", SERVES, name) as (_, http):
        yield http.get


@contextmanager
def asgi() -> Iterator[Get]:
    """The app of Starlette, with its lifespan."""
    with TestClient(loaded(FOLDER / "starlette_app.py").app) as http:
        yield http.get


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePetstore]:
    """A store of 45 animals, whose address and key the apps take from their environment."""
    fake = FakePetstore(per_minute=6)
    for number in range(45):
        fake.add_pet(f"n{number}")
    with fake.serve() as base_url:
        monkeypatch.setenv("PETSTORE_URL", base_url)
        monkeypatch.setenv("PETSTORE_KEY", fake.key)
        yield fake


SYNCHRONOUS = [
    pytest.param(partial(wsgi, name), marks=pytest.mark.e2e, id=name) for name in ("flask_app", "django_app")
]


@pytest.mark.parametrize("opened", [asgi, *SYNCHRONOUS])
def test_an_app_leads_through_all_pages(
    fake: FakePetstore, opened: Callable[[], AbstractContextManager[Get]]
) -> None:
    """`next` leads to each animal once. A made-up cursor is 400; when the limits are used up, the visitor is
    asked to come again."""
    with opened() as get:
        address, names = "/animals", list[str]()
        while address:
            page = get(address).json()
            names += page["animals"]
            address = page["next"]
        assert names == [f"n{number}" for number in range(45)]
        assert get("/animals?cursor=x").status_code == 400
        statuses = [get("/animals") for _ in range(3)]
        assert [each.status_code for each in statuses] == [200, 200, 503]
        assert 0 < int(statuses[-1].headers["retry-after"]) <= 60
    assert [request.query.get("limit") for request in fake.requests[:3]] == [["20"]] * 3
