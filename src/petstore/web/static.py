"""The files under /static. Their addresses have a digest of their content, so browsers keep them."""

from __future__ import annotations

from pathlib import PurePosixPath

from starlette.routing import Route

from petstore.core.packaged import Resource
from petstore.web.delivery import IMMUTABLE, Content

_MEDIA_TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


class StaticFiles:
    """All files of a folder, without folders below it."""

    def __init__(self, folder: Resource) -> None:
        self._folder = folder
        self._addresses: dict[str, str] = {}
        self._routes: list[Route] = []
        for entry in folder.iterdir():
            path = PurePosixPath(entry.name)
            content = self.content(entry.name, IMMUTABLE)
            address = f"static/{path.stem}.{content.digest[:12]}{path.suffix}"
            self._addresses[entry.name] = address
            self._routes.append(Route(f"/{address}", content.answer))

    def content(self, name: str, cache_control: str) -> Content:
        """A file for another address. Raises KeyError."""
        media_type = _MEDIA_TYPES.get(PurePosixPath(name).suffix, "text/plain")
        return Content(self._folder.joinpath(name).read_bytes(), media_type, cache_control)

    def address(self, name: str) -> str:
        """Where a file is, without a slash in front. Raises KeyError."""
        return self._addresses[name]

    def routes(self) -> list[Route]:
        return self._routes
