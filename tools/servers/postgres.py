"""A PostgreSQL server: its data directory, its start, and whether it accepts connections."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tools.servers import Unusable
from tools.servers.child import Child, reply_to
from tools.servers.find import NOBODY, as_nobody

_START_UP = b"\x00\x03\x00\x00user\x00petstore\x00\x00"  # of protocol 3.0


class Postgres:
    """A PostgreSQL with its data in `folder`, run by the user nobody where this process is root's.

    `address` is a socket or an address where it listens; `settings` are of the form `port=5432`.
    """

    def __init__(
        self, programs: Path, folder: Path, log: Path, address: Path | tuple[str, int], *settings: str
    ) -> None:
        self.programs = programs
        self.folder = folder
        self.settings = list(settings)
        self._address = address
        self.child = Child("PostgreSQL", [], log, dies_by=signal.SIGQUIT, cwd=folder, **as_nobody())

    def make(self, *options: str) -> None:
        """Make the data directory."""
        self.run("initdb", "--encoding=UTF8", "--locale=C", "--username=petstore", *options)

    def run(self, program: str, *arguments: str) -> None:
        """Run one of PostgreSQL's programs on the data directory. Raises Unusable when it fails."""
        command: list[str | Path] = [self.programs / program, *arguments, "-D", "data"]
        done = subprocess.run(
            command, **as_nobody(), check=False, capture_output=True, text=True, cwd=self.folder
        )
        if done.returncode:
            raise Unusable(f"PostgreSQL's {program} failed: {done.stderr.strip()}")

    def launch(self) -> None:
        """Start, and wait for nothing."""
        options = [f"--{setting}" for setting in self.settings]
        self.child.command = [self.programs / "postgres", "-D", "data", *options]
        self.child.start()

    def await_answers(self) -> None:
        """Wait until it accepts connections. Raises Unusable when it ends before that."""
        self.child.wait_until(self._is_ready)

    def _is_ready(self) -> bool:
        """Whether it answers a start-up message with a request for a password, or with a welcome."""
        message = (len(_START_UP) + 4).to_bytes(4, "big") + _START_UP
        return reply_to(message, self._address).startswith(b"R")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: `fast`, disconnects all; SIGQUIT: `immediate`, as a crash. Waits for the end."""
        self.child.stop(how)


def give_to_nobody(path: Path) -> None:
    """Make a file or a directory one that PostgreSQL owns, if this process is root's."""
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
