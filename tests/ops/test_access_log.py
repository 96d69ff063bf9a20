"""The access log through the application: who asked for what, and the outcome."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog

from petstore.core.keys import Access, mint
from petstore.ops import logs
from tests.support.journal import ACTOR
from tests.support.service import Shop, open_shop

PROXY = {"trusted_proxies": "10.0.0.0/8"}


class Log:
    """Standard error as a file; `lines` are complete once the shop is closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = (folder / "log").open("wb")

    @asynccontextmanager
    async def shop(self, **settings: Any) -> AsyncIterator[Shop]:
        async with open_shop(self.folder, access_log="on", log_format="json", **settings) as shop:
            yield shop

    def lines(self) -> list[dict[str, Any]]:
        text = (self.folder / "log").read_text(encoding="utf-8")
        return [line for line in map(json.loads, text.splitlines()) if line["event"] == "request"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    made = Log(tmp_path)
    monkeypatch.setattr(logs, "_standard_error", made.file.fileno)
    yield made
    structlog.reset_defaults()
    made.file.close()


class TestWhat:
    """Method, path template, size, worker."""

    async def test_what_was_asked_and_answered(self, log: Log) -> None:
        """The template of the path and never the path, the bytes of the body as sent, the worker's number."""
        async with log.shop() as shop:
            sizes = [
                len((await shop.post({"name": "Rex", "categoryId": 1})).body),
                len((await shop.ask("GET", "/v1/pets/7?secret=1")).body),
                len((await shop.ask("HEAD", "/v1/pets")).body),
                len((await shop.ask("PUT", "/v1/pets/8")).body),
                len((await shop.ask("GET", "/v1/secret")).body),
            ]
        assert [(line["method"], line["path"], line["status"]) for line in log.lines()] == [
            ("POST", "/v1/pets", 201),
            ("GET", "/v1/pets/{petId}", 400),
            ("HEAD", "/v1/pets", 200),
            ("PUT", "/v1/pets/{petId}", 405),
            ("GET", None, 404),
        ]
        assert [line["bytes"] for line in log.lines()] == sizes
        assert sizes[2] == 0 < sizes[0]
        assert {line["worker"] for line in log.lines()} == {0}

    async def test_a_method_is_one_of_a_list(self, log: Log) -> None:
        """A client may send any word as a method; the log says `other`."""
        async with log.shop() as shop:
            await shop.ask("BREW-SECRET", "/v1/pets")
            await shop.call("BREW-SECRET", "/docs")
        assert [line["method"] for line in log.lines()] == ["other", "other"]

    async def test_pages_outside_the_interface(self, log: Log) -> None:
        """Logged and counted as `site`, and as `none` where there is no page; health checks are not."""
        async with log.shop() as shop:
            page = await shop.call("GET", "/docs")
            for target in (
                "/favicon.ico",
                "/static/absent-secret",
                "/wp-login.php",
                "/healthz",
                "/readyz",
            ):
                await shop.call("GET", target, [("x-forwarded-for", "192.0.2.1")])
            await shop.call("POST", "/openapi.json")
            await shop.call("HEAD", "/docs")
            metrics = (await shop.call("GET", "/metrics")).body.decode()
        lines = log.lines()
        assert [(line["operation"], line["path"], line["status"]) for line in lines] == [
            ("site", "/docs", 200),
            ("site", "/favicon.ico", 200),
            ("none", None, 404),
            ("none", None, 404),
            ("site", "/openapi.json", 405),
            ("site", "/docs", 200),
        ]
        assert [line["bytes"] for line in lines][::5] == [len(page.body), 0]
        assert {line["address"] for line in lines} == {"127.0.0.1"}
        assert 'petstore_requests_total{operation="site",status="200"} 3.0\n' in metrics
        assert 'petstore_requests_total{operation="none",status="404"} 2.0\n' in metrics

    async def test_the_link_of_a_contact(self, log: Log) -> None:
        """Who reads the log can switch nobody's mail: no line has a token, right or wrong."""
        async with log.shop() as shop:
            contact = await shop.store.contacts.add("account", "tests", "anna@example.com", ACTOR)
            for method, query, token in (
                ("GET", "", contact.token),
                ("GET", "?off=key.banned", contact.token),
                ("POST", "?off=key.banned", contact.token),
                ("PUT", "", contact.token),
                ("GET", "", contact.token[::-1]),
                ("GET", "", f"{contact.token}/"),
            ):
                await shop.call(method, f"/notifications/{token}{query}")
        template = "/notifications/{token}"
        assert [(line["operation"], line["path"], line["status"]) for line in log.lines()] == [
            *(("site", template, 200) for _ in range(3)),
            *(("site", template, 405), ("site", template, 404), ("none", None, 404)),
        ]
        text = (log.folder / "log").read_text(encoding="utf-8")
        assert not {contact.token, contact.token[::-1]} & set(re.split(r"[^A-Za-z0-9_-]", text))


class TestWho:
    """The client's address, and the key that was refused."""

    async def test_the_address_behind_trusted_proxies(self, log: Log) -> None:
        """The hop that the proxies saw; nothing from a client that speaks for others."""
        async with log.shop(**PROXY) as shop:
            for client, forwarded in (
                ("203.0.113.7", "192.0.2.1"),
                ("10.0.0.1", "198.51.100.9, 192.0.2.1, 10.0.0.2"),
                ("10.0.0.1", "[2001:db8::0:1]:4711"),
                ("::ffff:203.0.113.7", None),
                ("fe80::1%eth0", None),
                ("10.0.0.1", "192.0.2.1" * 2_000),
            ):
                headers = [] if forwarded is None else [("x-forwarded-for", forwarded)]
                await shop.call("GET", "/v1/pets", headers, client=client)
        assert [line["address"] for line in log.lines()] == [
            "203.0.113.7",
            "192.0.2.1",
            "2001:db8::1",
            "203.0.113.7",
            "fe80::1",
            "unknown",
        ]

    @pytest.mark.parametrize(
        ("setting", "shown"),
        [
            ("full", ["203.0.113.7", "2001:db8:1:2::3"]),
            ("network", ["203.0.113.0/24", "2001:db8:1::/48"]),
            ("off", [None, None]),
        ],
    )
    async def test_how_much_of_it(self, log: Log, setting: str, shown: list[str | None]) -> None:
        """PETSTORE_LOG_ADDRESS, for the interface and for the pages."""
        async with log.shop(log_address=setting) as shop:
            for target in ("/v1/pets", "/docs"):
                for client in ("203.0.113.7", "2001:db8:1:2::3"):
                    await shop.call("GET", target, client=client)
        assert [line["address"] for line in log.lines()] == shown * 2

    async def test_why_a_key_was_refused(self, log: Log) -> None:
        """Each cause of a 401, with account and key where the key was one; and the same as a metric. A
        suspension is told from a level that is too low by its cause."""
        async with log.shop() as shop:
            revoked, revoked_id = await shop.open_account("revoked")
            expired, expired_id = await shop.open_account("expired")
            await shop.store.keys.revoke(revoked_id, ACTOR)
            await shop.store.keys.rotate(expired_id, "test", 0, ACTOR)
            shop.clock.advance(1)
            await shop.call("GET", "/v1/pets")
            for key in ("nonsense", mint("live"), expired, revoked):
                await shop.ask("GET", "/v1/pets", key=key)
            await shop.ask("GET", "/v1/pets")
            reader, reader_id = await shop.open_account("reader", access=Access.READ)
            await shop.post({}, key=reader)
            await shop.store.accounts.suspend("reader", ACTOR)
            await shop.post({}, key=reader)
            metrics = (await shop.call("GET", "/metrics")).body.decode()
        causes = ["missing", "malformed", "unknown", "expired", "revoked"]
        lines = log.lines()
        assert [line.get("cause") for line in lines] == [*causes, None, None, "suspended"]
        assert [line["status"] for line in lines] == [401] * 5 + [200, 403, 403]
        refused = [*lines[:5], *lines[6:]]
        known = [expired_id, revoked_id, reader_id, reader_id]
        assert [line["key"] for line in refused] == [None, None, None, *known]
        assert [line["account"] is None for line in refused] == [True, True, True, *[False] * 4]
        for cause in causes:
            assert f'petstore_unauthorized_total{{cause="{cause}"}} 1.0\n' in metrics
