"""A running service with its console, and people of each role at it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any
from urllib.parse import urljoin

import jinja2
import pytest
from argon2 import PasswordHasher

from petstore.console.passwords import Passwords
from petstore.core.people import Role
from tests.support.console import Shown, Visitor
from tests.support.journal import ACTOR
from tests.support.measuring import untraced
from tests.support.service import Shop, open_shop

PASSWORD = "a dog, a cat and a bird"
OTHER = "a fish, a crab and a whale"


async def invited(shop: Shop, name: str = "anna", role: Role = Role.STAFF) -> str:
    """The address of a new person's link, below the console."""
    return f"link/{(await shop.store.people.add(name, role, ACTOR)).token}"


async def with_password(shop: Shop, name: str = "anna", role: Role = Role.STAFF) -> Visitor:
    """A new person who has set a password and is signed in."""
    visitor = Visitor(shop)
    link = await invited(shop, name, role)
    shown = await visitor.fill(link, "", password=PASSWORD, again=PASSWORD)
    assert shown.address == "/console"
    return visitor


async def signs_in(
    visitor: Visitor, name: str = "anna", password: str = PASSWORD, path: str = "sign-in"
) -> Shown:
    return await visitor.fill(path, "sign-in", name=name, password=password)


async def follow(visitor: Visitor, shown: Shown, link: str) -> Shown:
    """The page to which a link of this one leads."""
    return await visitor.get(urljoin(shown.address, shown.links[link]).removeprefix("/console/"))


def assert_refused(shown: Shown, status: int, told: str) -> None:
    assert (shown.status, told in shown.text) == (status, True), shown.text


class _QuickPasswords(Passwords):
    """A hash takes a twentieth of a millisecond, not twenty: test_sign_in.py tests those of the service."""

    def __init__(self) -> None:
        super().__init__()
        self._hasher = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


@pytest.fixture(scope="session", autouse=True)
def quick_hashes() -> Iterator[None]:
    """Consoles in this process hash with little work."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("petstore.console.app.Passwords", _QuickPasswords)
        yield


@pytest.fixture(scope="session", autouse=True)
def compiled_templates() -> Iterator[None]:
    """Templates are compiled once and not for each shop, which would take a fifth of a second."""
    kept: dict[tuple[object, ...], Any] = {}
    compile_template = untraced(jinja2.Environment.compile)

    def compile_once(environment: jinja2.Environment, source: str, *names: Any) -> Any:
        key = source, *names
        if key not in kept:
            kept[key] = compile_template(environment, source, *names)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jinja2.Environment, "compile", compile_once)
        yield


@pytest.fixture
async def viewer(shop: Shop) -> Visitor:
    return await Visitor(shop).sign_in_as("viewer")


@pytest.fixture
async def staff(shop: Shop) -> Visitor:
    return await Visitor(shop).sign_in_as("staff")


@pytest.fixture
async def operator(shop: Shop) -> Visitor:
    return await Visitor(shop).sign_in_as("operator")


@pytest.fixture
async def tls(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Shop]:
    """Behind a proxy with TLS on this machine, under a name."""
    folder, base_url = tmp_path_factory.mktemp("tls"), "https://shop.example/v1"
    async with open_shop(folder, console="on", trusted_proxies="127.0.0.1", base_url=base_url) as running:
        yield running


@pytest.fixture
async def anna(shop: Shop) -> Visitor:
    """A member of staff who has set a password and is signed in."""
    return await with_password(shop)
