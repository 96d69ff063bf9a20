"""Pages kept ready: rendered once in a thread, compressed once for each address that readers use.

Neither holds up the event loop, and a client that invents names of hosts costs no more than the budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Protocol

from petstore.core.errors import Unavailable
from petstore.site.token_bucket import TokenBucket
from petstore.web.addresses import EXAMPLE
from petstore.web.delivery import REVALIDATED, Content

# Pages that are kept, each for one address, and as many results of searches.
_KEPT = 32
_MEDIA_TYPES = {
    "md": "text/markdown",
    "txt": "text/plain",
    "xml": "application/xml",
    "atom": "application/atom+xml",
}
# A placeholder in error pages for the relative path to the root, which depends on the requested path.
_ROOT_MARK = "{root}"
_DEEPEST_PATH = 32


class Renderer(Protocol):
    """Makes pages as text, with EXAMPLE as the address of the service, and keeps what `page` made."""

    def page(self, path: str) -> str: ...

    def search(self, query: str) -> str: ...

    def error(self, status: int, message: str, root: str) -> str: ...

    def switches(self, **values: Any) -> str: ...

    def status(self, **values: Any) -> str: ...


class RenderedPages:
    """`make` imports what renders, so it is called in a thread, once. `headers` are those of each page.

    `budget` is for readers at other addresses than `configured`; beyond it they see the one of the examples.
    `searches` is for queries that are not kept.
    """

    def __init__(
        self,
        make: Callable[[], Renderer],
        headers: Mapping[str, str],
        configured: str,
        budget: TokenBucket,
        searches: TokenBucket,
    ) -> None:
        self._make = lru_cache(maxsize=1)(make)
        self._headers = headers
        self._free = {EXAMPLE, configured}
        self._budget = budget
        self._searches = searches
        self._found: dict[tuple[str, str], Content] = {}
        self._kept: dict[tuple[str, str], Content] = {}
        self._working = asyncio.Lock()
        self._searching = asyncio.Lock()
        self._error = lru_cache(maxsize=16)(self._render_error)

    async def page(self, path: str, address: str) -> Content:
        """The page at a path, without a slash in front, for a reader at an address."""
        return self._look_up(path, address) or await self._prepare(path, address)

    async def search(self, query: str, address: str) -> Content:
        """The page of a search for a reader at an address. Raises Unavailable beyond the budget."""
        asked = query, address
        if asked not in self._found and not self._searches.take():
            raise Unavailable("Too much is being searched at the moment. Try again in a second.")
        async with self._searching:  # no other page waits for the index, which takes 0.7 s to make
            content = self._found.pop(asked, None)
            if content is None:
                await self.renderer()
                content = await asyncio.to_thread(self._search, *asked)
            self._found[asked] = content  # most recently used last
            if len(self._found) > _KEPT:
                del self._found[next(iter(self._found))]
            return content

    async def error(self, status: int, message: str, path: str) -> str:
        """The page of an error as an answer to the request of a path; `message` is one of few."""
        depth = path.count("/") - 1
        root = ("../" * depth or "./") if depth <= _DEEPEST_PATH else "/"
        async with self._working:
            text = await asyncio.to_thread(self._error, status, message)
        return text.replace(_ROOT_MARK, root)

    async def renderer(self) -> Renderer:
        """What renders, for a page that is not kept."""
        async with self._working:
            return await asyncio.to_thread(self._make)

    def _look_up(self, path: str, address: str) -> Content | None:
        content = self._kept.pop((path, address), None)
        if content is not None:
            self._kept[path, address] = content  # most recently used last
        return content

    async def _prepare(self, path: str, address: str) -> Content:
        async with self._working:
            if content := self._look_up(path, address):
                return content
            if address not in self._free and not self._budget.take():
                address = EXAMPLE
            made = self._look_up(path, address)
            if made is None:
                made = await asyncio.to_thread(self._fill, path, address)
            self._kept[path, address] = made
            if len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
            return made

    def _fill(self, path: str, address: str) -> Content:
        text = self._make().page(path).replace(EXAMPLE, address)
        return self._content(text, _MEDIA_TYPES.get(path.rpartition(".")[2], "text/html"))

    def _search(self, query: str, address: str) -> Content:
        return self._content(self._make().search(query).replace(EXAMPLE, address), "text/html")

    def _content(self, text: str, media_type: str) -> Content:
        return Content(text.encode(), media_type, REVALIDATED, self._headers)

    def _render_error(self, status: int, message: str) -> str:
        return self._make().error(status, message, _ROOT_MARK)
