"""An unexpected error in any layer leaves a trace in the log, and no secret with it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import pytest
import structlog

from petstore import config
from petstore.ops import logs
from petstore.ops.flusher import CounterFlusher
from petstore.wiring.application import Application
from tests.support.clock import ManualClock
from tests.support.postgres import fresh_database
from tests.support.service import open_shop
from tests.support.valkey import emptied_url
from tests.support.waiting import until

DATABASE_PASSWORD, VALKEY_PASSWORD = "kept-by-the-database", "kept-by-valkey"
FAULT = "a fault that nobody foresaw"
BROKEN = (  # the limiter first: it may have granted the next requests with one before
    ("petstore.limiter.valkey.limiter.ValkeyLimiter.take", "/v1/pets"),
    ("petstore.api.pets.read_target", "/v1/pets?limit=3"),
    ("petstore.storage.postgres.database.Database.fetch_row", "/v1/pets/1"),
    ("petstore.site.rendered.RenderedPages.page", "/docs"),
)


def with_password(url: str, user: str, password: str) -> str:
    """The address with a password: the server asks nobody for one, and takes any."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{user}:{password}@{parts.netloc.rpartition('@')[2]}").geturl()


def fail(*given: Any, **more: Any) -> NoReturn:
    """Whatever it is called for. The secrets are within `given`, `more` and the frames above."""
    raise RuntimeError(FAULT)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], str]]:
    """Everything that was written to standard error; structlog is as before afterwards."""
    path = tmp_path / "standard-error"
    with path.open("wb") as file:
        monkeypatch.setattr(logs, "_standard_error", file.fileno)
        yield path.read_text
    structlog.reset_defaults()


@pytest.fixture
def settings() -> Iterator[dict[str, Any]]:
    """The settings of a service whose database and counters have passwords."""
    user = os.environ.get("PGUSER", "petstore")
    with fresh_database(migrated=True) as database:
        yield {
            "log_format": "json",
            "database_url": with_password(database, urlsplit(database).username or user, DATABASE_PASSWORD),
            "valkey_url": with_password(emptied_url(), "default", VALKEY_PASSWORD),
        }


def check(text: str, *secrets: str) -> None:
    """There is the trace with its fault, and nothing that must not be told."""
    assert FAULT in text
    assert "in fail" in text
    for secret in (*secrets, DATABASE_PASSWORD, VALKEY_PASSWORD):
        assert secret not in text


class TestUnexpectedErrors:
    """The trace names files and lines, never the values of variables."""

    @pytest.mark.parametrize("log_format", ["json", "text"])
    async def test_in_a_request(
        self,
        tmp_path: Path,
        log: Callable[[], str],
        settings: dict[str, Any],
        monkeypatch: pytest.MonkeyPatch,
        log_format: str,
    ) -> None:
        """The handler, the store, the limiter, the site: 500, and neither the key nor a password, in either
        format."""
        settings["log_format"] = log_format
        async with open_shop(tmp_path, access_log="on", **settings) as shop:
            await shop.ask("GET", "/v1/pets")  # its key is known from here on
            shop.expects_500 = True
            for broken, target in BROKEN:
                with monkeypatch.context() as patch:
                    patch.setattr(broken, fail)
                    assert (await shop.ask("GET", target)).status == 500, broken
        check(log(), shop.key, shop.key[10:42])
        assert log().count(f"RuntimeError: {FAULT}") == len(BROKEN)

    async def test_in_the_journal(
        self,
        tmp_path: Path,
        log: Callable[[], str],
        settings: dict[str, Any],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Saving the counters fails in a way that nobody foresaw, and is tried again."""
        monkeypatch.setattr("petstore.ops.flusher.INTERVAL_SECONDS", 0.01)
        async with open_shop(tmp_path, **settings) as shop:
            await shop.ask("GET", "/v1/pets")
            with monkeypatch.context() as broken:
                broken.setattr(CounterFlusher, "save", fail)
                await until(lambda: FAULT in log())
        check(log(), shop.key)

    async def test_in_a_start(
        self, log: Callable[[], str], settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is handed from function to function then are the settings, with both passwords."""
        monkeypatch.setattr("petstore.wiring.service.open_store_and_limiter", fail)
        loaded = config.load({f"PETSTORE_{name.upper()}": text for name, text in settings.items()})
        assert not await Application(loaded, ManualClock()).try_to_start()
        check(log())


_WITHOUT_DESCRIPTORS = f"""
import resource, sys, structlog
from petstore.ops import logs
writer = logs.start("info", sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
def work(key):
    raise RuntimeError("{FAULT}")
try:
    work(sys.argv[2])
except RuntimeError as error:
    structlog.get_logger().error("unexpected error", exc_info=error)
writer.close()
"""


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_a_fault_without_descriptors_is_told(log_format: str) -> None:
    """It holds for the first one of a process, which can open no file for it: neither a module nor a source.
    Here structlog has rich, which shows variables."""
    command = [sys.executable, "-c", _WITHOUT_DESCRIPTORS, log_format, "secret"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert FAULT in done.stderr
    assert "secret" not in done.stderr
