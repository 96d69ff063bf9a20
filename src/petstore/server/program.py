"""This program in memory, before the first worker is forked, and whether it is still the one on the disk."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection

import structlog

from petstore.core import packaged

_LOOK_EVERY_SECONDS = 60.0

_log = structlog.get_logger("petstore.parent")


def load(*, but: Collection[str]) -> None:
    """Import every module that a worker may import, and read every file, but for some packages.

    A worker that is forked later has the code of its parent, and must not add modules of another version.
    """
    for module in packaged.modules():
        if not any(f"{module}.".startswith(f"{name}.") for name in but):
            importlib.import_module(module)
    packaged.read_all()


class Installed:
    """The program on the disk. When it has been replaced, a line says so once."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._began = packaged.fingerprint()
        self._looked_at = monotonic()
        self.is_replaced = False

    def look(self, *, now: bool = False) -> None:
        """Once a minute, or `now`."""
        moment = self._monotonic()
        if self.is_replaced or not (now or moment - self._looked_at >= _LOOK_EVERY_SECONDS):
            return
        self._looked_at = moment
        try:
            self.is_replaced = packaged.fingerprint() != self._began
        except OSError:  # it goes away while it is looked at
            self.is_replaced = True
        if self.is_replaced:
            message = "The program on the disk was replaced; this one goes on as it began. Restart it."
            _log.warning("program replaced", message=message)
