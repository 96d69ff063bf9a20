"""A Valkey server: its start, and whether it answers."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Self

from tools.servers.child import Child, reply_to


class Valkey:
    """A Valkey that works in `folder`. `address` is a socket or an address where it listens."""

    def __init__(
        self, program: Path, folder: Path, log: Path, address: Path | tuple[str, int], *options: str
    ) -> None:
        self.folder = folder
        self._address = address
        self.child = Child("Valkey", [program, *options], log, cwd=folder)

    def start(self) -> Self:
        """Start, and wait until it answers. Raises Unusable."""
        self.child.start()
        self.child.wait_until(self._is_ready)
        return self

    def _is_ready(self) -> bool:
        """Whether it takes commands; that it wants a password is an answer."""
        return reply_to(b"PING\r\n", self._address).startswith((b"+PONG", b"-NOAUTH"))

    def stop(self) -> None:
        self.child.stop(signal.SIGTERM)
