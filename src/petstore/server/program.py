"""Loads the whole program at the start, and detects that another version was installed."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Collection

import structlog

from petstore.core import packaged

_CHECK_INTERVAL_SECONDS = 60.0

_log = structlog.get_logger("petstore.parent")


def load(*, but: Collection[str]) -> None:
    """Import every module and read every data file that a process may need, except for some packages.

    A process forked after an upgrade must not mix modules of two versions. It shares this memory and never
    looks for garbage in it: a look would add 20 ms to a reload without overlap, and 40 to the start.
    """
    gc.disable()
    for module in packaged.modules():
        if not any(f"{module}.".startswith(f"{name}.") for name in but):
            importlib.import_module(module)
    packaged.read_all()
    gc.freeze()
    gc.enable()


class Installed:
    """The program on the disk, compared with the first check. Logs one warning when it was replaced."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._fingerprint: frozenset[tuple[str, int, int]] | None = None
        self._checked_at = 0.0
        self.is_replaced = False

    def check(self, *, now: bool = False) -> None:
        """Compare the files, at most once a minute unless `now`. The first call compares with nothing."""
        moment = self._monotonic()
        is_due = self._fingerprint is None or moment - self._checked_at >= _CHECK_INTERVAL_SECONDS
        if self.is_replaced or not (now or is_due):
            return
        self._checked_at = moment
        try:
            found = packaged.fingerprint()
            self._fingerprint = self._fingerprint or found
            self.is_replaced = found != self._fingerprint
        except OSError:  # removed during the comparison
            self.is_replaced = True
        if self.is_replaced:
            message = "The program on the disk was replaced; this one goes on as it began. Restart it."
            _log.warning("program replaced", message=message)
