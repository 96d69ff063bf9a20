"""Makes pages: each in its turn, from templates that are compiled in a thread when they are first used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache

from starlette.responses import Response

from petstore.console.visit import Page, Renderer
from petstore.web.turns import Turns


class PageMaker:
    """`renderer` is called in a thread, at the first page: it imports what renders."""

    def __init__(self, renderer: Callable[[], Renderer], turns: Turns) -> None:
        self._new_renderer = lru_cache(maxsize=1)(renderer)
        self.turns = turns
        self._ready: dict[str, Renderer] = {}
        self._preparing = asyncio.Lock()

    async def finish(self, response: Response) -> Response:
        """The response; if it is a page, with its text."""
        if isinstance(response, Page):
            renderer = self._ready.get(response.template) or await self._prepare(response.template)
            await self.turns.next()
            response.fill(renderer)
        return response

    async def _prepare(self, template: str) -> Renderer:
        async with self._preparing:
            if template not in self._ready:
                self._ready[template] = await asyncio.to_thread(self._prepared, template)
        return self._ready[template]

    def _prepared(self, template: str) -> Renderer:
        renderer = self._new_renderer()
        renderer.prepare(template)
        return renderer
