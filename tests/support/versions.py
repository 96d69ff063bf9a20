"""Versions as a test wants them: they stand until it moves them."""

from __future__ import annotations

from petstore.core.versions import Versions


class SteeredVersions:
    """Implements petstore.core.versions.VersionSource."""

    def __init__(self) -> None:
        self.now = Versions(1, 1)

    async def current(self) -> Versions:
        return self.now

    def try_current(self) -> Versions:
        return self.now

    def known(self) -> Versions:
        return self.now
