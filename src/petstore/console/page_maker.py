"""Renders pages, each in a slot of event-loop time. A template is compiled in a thread at its first use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache

from starlette.responses import Response

from petstore.console.visit import Page, Renderer
from petstore.web.slots import Slots


class PageMaker:
    """`renderer` is called once, in a thread: it imports the template engine."""

    def __init__(self, renderer: Callable[[], Renderer], slots: Slots) -> None:
        self._new_renderer = lru_cache(maxsize=1)(renderer)
        self.slots = slots
        self._ready: dict[str, Renderer] = {}
        self._preparing = asyncio.Lock()

    async def finish(self, response: Response) -> Response:
        """The response; a Page is rendered first."""
        if isinstance(response, Page):
            renderer = self._ready.get(response.template) or await self._prepare(response.template)
            await self.slots.wait()
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
