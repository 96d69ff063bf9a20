"""`make serve`: production and, at the next port and with a file of its own, staging.

Where the environment says for whom, of which stage or on which server it is, that one service alone.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from tools.servers.child import Child

_PROGRAM = str(Path(sys.executable).with_name("petstore"))
_CHOSEN = """STAGE CONFIG HOST ENVIRONMENT BASE_URL STAGING_BASE_URL PRODUCTION_BASE_URL DATABASE_URL_FILE
    VALKEY_URL VALKEY_URL_FILE"""
_ALONE = {f"PETSTORE_{name}" for name in _CHOSEN.split()}
_FILL = (("db", "migrate"), ("staging", "refresh", "--seed", "1", "--animals", "50", "--yes"))


def environments(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]] | None:
    """The environments of production and of staging; None for one service alone."""
    url = given.get("PETSTORE_DATABASE_URL", "sqlite:///petstore.db")
    port = given.get("PETSTORE_PORT", "8080")
    if _ALONE & given.keys() or not url.startswith("sqlite:") or not port.isdecimal() or int(port) > 65_534:
        return None
    here, there = (f"http://127.0.0.1:{number}/v1" for number in (port, int(port) + 1))
    production = {"PETSTORE_STAGE": "production", "PETSTORE_STAGING_BASE_URL": there}
    staging = {"PETSTORE_STAGE": "staging", "PETSTORE_PRODUCTION_BASE_URL": here}
    staging["PETSTORE_PORT"] = str(int(port) + 1)
    staging["PETSTORE_DATABASE_URL"] = f"{url.removesuffix('.db')}-staging.db"
    return {**given, **production}, {**given, **staging}


class Both:
    """The two services. Each has a session of its own, so a signal reaches it once: by this program."""

    def __init__(self) -> None:
        self._children: list[Child] = []
        self._stopped_by: int | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._pass_on)

    def run(self, production: Mapping[str, str], staging: Mapping[str, str]) -> int:
        """Production's exit code, once both have ended."""
        with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.bind(f"{folder}/notify")
            first = self._start({**production, "NOTIFY_SOCKET": f"{folder}/notify"})
            Thread(target=self._run_staging, args=(staging, told), daemon=True).start()
            code = first.process.wait()
        self._stopped_by = self._stopped_by or signal.SIGTERM
        for child in self._children:
            child.stop()
        return code if code >= 0 else 128 - code

    def _run_staging(self, staging: Mapping[str, str], told: socket.socket) -> None:
        while b"READY=1" not in told.recv(4_096):  # sd_notify(3): at the port another program may answer
            pass
        is_new = not Path(staging["PETSTORE_DATABASE_URL"].removeprefix("sqlite:///")).exists()
        for words in _FILL if is_new else ():
            subprocess.run([_PROGRAM, *words], env=staging, stdout=subprocess.DEVNULL, check=False)
        code = self._start(staging).process.wait()
        if self._stopped_by is None:
            sys.stderr.write(f"Staging has ended ({code}), see above; production goes on without it.\n")

    def _start(self, environment: Mapping[str, str]) -> Child:
        child = Child("petstore", [_PROGRAM, "serve"], Path(os.devnull), stdin=None, stdout=None, stderr=None)
        child.start(environment)
        self._children.append(child)
        if self._stopped_by is not None:  # by a signal that came meanwhile
            child.process.send_signal(self._stopped_by)
        return child

    def _pass_on(self, number: int, _frame: object) -> None:
        if number != signal.SIGHUP or sys.stderr.isatty():  # else it reads the settings anew
            self._stopped_by = number
        for child in self._children:
            child.process.send_signal(number)


if __name__ == "__main__":
    if (both := environments(os.environ)) is None:
        os.execv(_PROGRAM, [_PROGRAM, "serve"])
    sys.exit(Both().run(*both))
