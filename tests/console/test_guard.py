"""The console's door: sessions, and what is sent with every page."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from starlette.requests import Request

from petstore.console.rendering import Page
from tests.console.conftest import assert_refused
from tests.support.console import BROWSER, Visitor
from tests.support.service import Shop, open_shop


async def test_an_unknown_address_leads_back(shop: Shop, viewer: Visitor) -> None:
    """An unknown address leads to the overview or the sign-in page, from any depth; programs get JSON."""
    for visitor, way in ((viewer, "Back to the overview"), (Visitor(shop), "Go to the sign-in page")):
        for address in ("nowhere", "pets/7/nowhere", "static/nowhere.js"):
            shown = await visitor.get(address)
            assert_refused(shown, 404, "The console has no page at this address.")
            assert urljoin(shown.address, shown.links[way]) == "/console"
    plain = await viewer.get("nowhere", headers=[("accept", "*/*")])
    assert (plain.status, plain.headers["content-type"]) == (404, "application/json")
    wrong = await viewer.post("pets/7/nowhere", {}, headers=[("accept", "text/html")])
    assert wrong.status == 404
    wrong = await viewer.get("sign-out")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert "Back to the overview" in wrong.links
    assert "Pet Store console" not in (await shop.call("GET", "/nowhere", [BROWSER], b"")).body.decode()


async def test_cookies_of_any_length_cost_little(shop: Shop) -> None:
    """A cookie of 30,000 escapes would hold the whole process for half a minute (CVE-2024-7592)."""
    escapes = ("cookie", 'a="' + r"\"" * 30_000 + '"')
    began = time.process_time()
    assert (await Visitor(shop).get("sign-in", headers=[escapes])).status == 200
    assert time.process_time() - began < 5.0


async def test_a_cookie_without_a_name_is_none_of_ours(shop: Shop, staff: Visitor) -> None:
    """Another host of the domain may set one, whose value looks like a name of ours."""
    staff.cookies = {**staff.cookies, "petstore-session; a": ""}
    assert "Sign out" in (await staff.get()).text


async def test_no_answer_is_kept_or_loads_anything_from_elsewhere(shop: Shop, staff: Visitor) -> None:
    """The headers say so: of pages, of refusals and of what leads on to another page."""
    category = {"csrf": (await staff.get("me")).forms[0].fields["csrf"], "id": "2", "name": "Cats"}
    for shown, status in (
        (await staff.get(), 200),
        (await staff.get("people"), 403),
        (await staff.get("pets/7"), 404),
        (await staff.post("categories", category, follow=False), 303),
        (await Visitor(shop).get("", follow=False), 303),
        (await Visitor(shop).get("sign-in"), 200),
    ):
        assert shown.status == status
        assert shown.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';")
        assert "frame-ancestors 'none'" in shown.headers["content-security-policy"]
        assert shown.headers["cache-control"] == "no-store"
        assert shown.headers["x-content-type-options"] == "nosniff"


async def test_the_console_can_be_switched_off(tmp_path: Path) -> None:
    """There is nothing at its address; also where the service is reached from elsewhere by default."""
    for console, host, proxies, status in (
        ("off", "127.0.0.1", "", 404),
        ("auto", "0.0.0.0", "", 404),
        ("auto", "127.0.0.1", "127.0.0.1", 404),  # a proxy beside it is reached from anywhere
        ("on", "127.0.0.1", "127.0.0.1", 303),
        ("on", "0.0.0.0", "", 303),
    ):
        folder = tmp_path / f"{console}-{host}-{proxies}"
        folder.mkdir()
        async with open_shop(folder, console=console, host=host, trusted_proxies=proxies) as shop:
            assert (await Visitor(shop).get("", follow=False)).status == status


async def test_pages_are_made_in_slots(shop: Shop, viewer: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight at once, each in two: its data, and its text. Other requests come between any two slots."""
    rounds, works = 0, list[int]()

    async def others() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        def note(*arguments: Any, **options: Any) -> Any:
            works.append(rounds)
            return function(*arguments, **options)

        return note

    await viewer.get("categories")
    monkeypatch.setattr(shop.store.categories, "all", noted(shop.store.categories.all))
    monkeypatch.setattr(Page, "fill", noted(Page.fill))
    beside = asyncio.create_task(others())
    shown = await asyncio.gather(*(viewer.get("categories") for _ in range(8)))
    beside.cancel()
    assert [page.status for page in shown] == [200] * 8
    assert len(set(works)) == len(works) == 16


async def test_a_page_that_cant_be_made(viewer: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is answered 500, in words, and the next one is served."""

    def fail_once(*_: object, **__: object) -> None:
        monkeypatch.undo()
        raise ZeroDivisionError

    monkeypatch.setattr(Page, "fill", fail_once)
    shown = await viewer.get("me")
    assert shown.status == 500, shown.text
    assert "Something went wrong on our side." in shown.text
    assert (await viewer.get("me")).status == 200


CONSOLE = Path("src/petstore/console")


def test_each_file_has_its_checksum_and_licence() -> None:
    """`tools/vendor` fetches the pinned versions again, and compares in the same way."""
    lines = (CONSOLE / "licences" / "SHA256SUMS").read_text().splitlines()
    listed = {name: checksum for checksum, name in map(str.split, lines)}
    vendored = sorted(path.name for path in (CONSOLE / "static").iterdir() if ".min." in path.name)
    assert vendored == sorted(listed)
    for name, checksum in listed.items():
        assert hashlib.sha256((CONSOLE / "static" / name).read_bytes()).hexdigest() == checksum
        assert (CONSOLE / "licences" / f"{name.partition('-')[0]}.txt").stat().st_size > 500


async def test_an_unknown_address_keeps_nothing(shop: Shop) -> None:
    """Anybody can ask for one, as often as they like."""
    stranger = Visitor(shop)
    await stranger.get("nothing")
    kept = []
    for _ in range(2):
        gc.collect()
        kept.append(sum(isinstance(each, Request) for each in gc.get_objects()))
        for _ in range(20):
            await stranger.get("nothing")
    assert kept[1] <= kept[0] + 1
