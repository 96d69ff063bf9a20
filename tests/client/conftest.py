"""Both kinds of client, and one service for a module."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

import pytest
from petstore_client import Petstore

from tests.client import kit
from tests.client.kit import KINDS, Scripted, Served, served

_names = count()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Petstore, or AsyncPetstore."""
    return str(request.param)


@pytest.fixture
def scripted(kind: str) -> Iterator[Scripted]:
    """Opens clients of this kind, each with the answers that it gets."""
    with ExitStack() as opened:
        yield lambda *answers, **options: opened.enter_context(kit.scripted(kind, *answers, **options))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The real service, shared by the tests of a module."""
    with served(tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture
def petstore(service: Served, kind: str) -> Petstore:
    """A client of this kind, with a key that may do everything."""
    client: Petstore = service.client(kind)
    return client


@pytest.fixture
def free_key(service: Served) -> str:
    """A key of an account of its own on the Free plan."""
    return service.open_account(f"free{next(_names)}")
