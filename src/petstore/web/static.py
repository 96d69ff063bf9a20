"""The files under /static. Their addresses contain a digest, so browsers cache them for ever."""

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
    """The files of one folder, without its subfolders."""

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
        """The content of a file. Raises KeyError."""
        media_type = _MEDIA_TYPES.get(PurePosixPath(name).suffix, "text/plain")
        return Content(self._folder.joinpath(name).read_bytes(), media_type, cache_control)

    def address(self, name: str) -> str:
        """The address of a file, without a leading slash. Raises KeyError."""
        return self._addresses[name]

    def routes(self) -> list[Route]:
        return self._routes
