"""This project's server, as an operator starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.servers.child import Child, status_of

PROGRAM = Path(sys.executable).with_name("petstore")


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with these settings, and none of its own.

    Settings are given by their name in lower case, as text.
    """
    # Else each start compiles all modules anew, and output is not kept back as on an operator's machine.
    dropped = ("PETSTORE_", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | {f"PETSTORE_{name.upper()}": text for name, text in settings.items()}


def run(
    *words: str | Path,
    settings: Mapping[str, str],
    program: Path = PROGRAM,
    prefix: Sequence[str] = (),
    **how: Any,
) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself, within a minute. `prefix` is a command that runs it."""
    command = [*prefix, program, *words]
    return subprocess.run(
        command, env=environment(settings), capture_output=True, text=True, timeout=60, check=False, **how
    )


class Petstore:
    """A `petstore serve` on a port of 127.0.0.1. `prefix` is a command that runs it; `how` is for Child.

    Settings are given by their name in lower case; `variables` are of the environment besides.
    """

    def __init__(
        self,
        name: str,
        port: int,
        settings: Mapping[str, str],
        log: Path,
        *,
        program: Path = PROGRAM,
        prefix: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        **how: Any,
    ) -> None:
        self.port = port
        self._variables = dict(variables or {})
        self.settings = {"host": "127.0.0.1", "port": str(port), **settings}
        self.program = program
        self._prefix = prefix
        self.child = Child(name, [], log, **how)

    def launch(self) -> None:
        """Start, and wait for nothing."""
        self.child.command = [*self._prefix, self.program, "serve"]
        self.child.start(environment(self.settings) | self._variables)

    def start(self) -> None:
        """Start, and wait until it is ready. Raises Unusable."""
        self.launch()
        self.child.wait_until(self.is_ready)

    def is_ready(self) -> bool:
        return status_of(self.port, "/readyz") == 200

    def stop(self) -> None:
        self.child.stop()
