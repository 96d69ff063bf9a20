"""A real Chromium before the real console: one server on SQLite, and two replicas that share everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.console.browser.desk import Desk, Servers
from tests.support.browser import DESKTOP, running_browser
from tests.support.postgres import fresh_database
from tests.support.server import Server, running_server
from tests.support.valkey import ValkeyServer

_REPLICAS = 2
# A key is banned at once when it goes on: a day here has no minute to wait.
_SETTINGS = {
    "console": "on", "access_log": "off", "ban_grace": "1ms", "ban_minimum_rejections": "3",
}  # fmt: skip


def _on_sqlite(folder: Path, stack: ExitStack) -> list[Server]:
    return [stack.enter_context(running_server(folder, **_SETTINGS))]


def _on_replicas(folder: Path, stack: ExitStack) -> list[Server]:
    """A process each, over one PostgreSQL and one Valkey."""
    valkey = stack.enter_context(ValkeyServer().start())
    settings = {
        "database_url": stack.enter_context(fresh_database()),
        "valkey_url": valkey.url,
        "replicas": str(_REPLICAS),
        **_SETTINGS,
    }
    return [
        stack.enter_context(running_server(folder, log=folder / f"replica-{number}.log", **settings))
        for number in range(_REPLICAS)
    ]


@pytest.fixture(scope="package")
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """The service in the shape that a module names, with nothing in it yet."""
    folder = tmp_path_factory.mktemp("console")
    start = {"sqlite": _on_sqlite, "replicas": _on_replicas}[request.param]
    with ExitStack() as stack:
        yield Servers(start(folder, stack))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests here; each desk has a context, and so cookies, of its own."""
    with running_browser() as started:
        yield started


OpenDesk = Callable[..., Desk]


@pytest.fixture
def open_desk(browser: Browser, shop: Servers) -> Iterator[OpenDesk]:
    """Makes desks: `open_desk()`, and with options of a context, `java_script_enabled=False`."""
    with ExitStack() as stack:

        def make(**options: Any) -> Desk:
            context = stack.enter_context(browser.new_context(**{"viewport": DESKTOP, **options}))
            return Desk(context.new_page(), shop)

        yield make
