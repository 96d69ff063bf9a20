"""How many of our modules one request enters, in their order."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from tests.architecture.sources import SOURCE
from tests.support.service import Shop, open_shop


class Road:
    """Notes each module of `petstore` when one of its functions is first called or resumed."""

    def __init__(self) -> None:
        self.modules: list[str] = []
        self.is_open = False
        self.tasks: set[asyncio.Task[Any]] = set()  # that work beside the request
        self._names: dict[CodeType, str] = {}
        self._home = threading.get_ident()
        self._thread = threading.local()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and (name := self._module(frame.f_code)) and self._counts(name):
            self.modules.append(name)

    def _counts(self, name: str) -> bool:
        """Whether a call of a module is the request's: in other threads the store's calls are, not the log's
        of earlier requests; in this one not those of older tasks, which run meanwhile on a busy machine."""
        if threading.get_ident() != self._home:
            if not hasattr(self._thread, "root"):
                self._thread.root = name
            if not self._thread.root.startswith("storage."):
                return False
        elif self.is_open and asyncio.current_task() in self.tasks:
            return False
        return self.is_open and name not in self.modules

    def _module(self, code: CodeType) -> str:
        if code not in self._names:
            path = Path(code.co_filename)
            inside = path.is_relative_to(SOURCE)
            self._names[code] = ".".join(path.relative_to(SOURCE).with_suffix("").parts[1:]) if inside else ""
        return self._names[code]


def rooms(modules: list[str]) -> set[str]:
    """The top-level packages among the modules."""
    return {module.partition(".")[0] for module in modules}


def in_one_line(modules: list[str]) -> str:
    """The road in one line."""
    return f"{len(modules)} modules in {len(rooms(modules))} rooms: {' > '.join(modules)}"


async def _walk(folder: Path, road: Road) -> dict[str, list[str]]:
    roads = {}
    async with open_shop(folder, access_log="on") as shop:
        shop.application.service.flusher.stop()  # the writer's thread would save counters meanwhile
        await shop.post({"name": "Rex", "categoryId": 1})
        await shop.ask("GET", "/v1/pets?limit=5")
        for name in ("cached page", "uncached page", "creation"):
            await asyncio.sleep(0)  # the turn of the event loop before it is over
            road.modules, road.tasks = [], asyncio.all_tasks() - {asyncio.current_task()}
            road.is_open = True
            status = await _ask(shop, name)
            road.is_open = False
            assert status == (201 if name == "creation" else 200)
            roads[name] = road.modules
    return roads


async def _ask(shop: Shop, name: str) -> int:
    if name == "creation":
        return (await shop.post({"name": "Tom", "categoryId": 2})).status
    return (await shop.ask("GET", f"/v1/pets?limit={5 if name == 'cached page' else 6}")).status


@cache
def walk() -> dict[str, list[str]]:
    """The roads of a GET of a cached page, of one that is read, and of a POST, on SQLite with a known key."""
    road = Road()
    before, before_threads = sys.getprofile(), threading.getprofile()
    with tempfile.TemporaryDirectory() as folder:
        threading.setprofile(road)  # the store's writer has a thread
        sys.setprofile(road)
        try:
            return asyncio.run(_walk(Path(folder), road))
        finally:
            sys.setprofile(before)
            threading.setprofile(before_threads)


MODULES = {"cached page": 14, "uncached page": 18, "creation": 22}
ROOMS = 8


@pytest.mark.parametrize("name", MODULES)
def test_a_request_enters_few_modules(name: str) -> None:
    """A reader of one request opens so many files at most. Lower the number when the road becomes shorter."""
    modules = walk()[name]
    assert len(modules) <= MODULES[name], in_one_line(modules)
    assert len(rooms(modules)) <= ROOMS, in_one_line(modules)
