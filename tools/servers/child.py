"""A server as a child process that writes to a file, is ended by its id, and ends with its parent."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tools.servers import Unusable

_START_SECONDS = 60.0
_LOOK_AGAIN_SECONDS = 0.005
_LOG_CHARACTERS = 2_000
_NICED_WITHIN_SECONDS = 0.3
_BEGUN_WITHIN_SECONDS = 5.0


class Child:
    """A program that runs in the background, in a session of its own.

    The kernel sends it `dies_by` when the thread that started it ends (Linux, by util-linux's setpriv);
    `cores` are the processors that it may use. `how` are further arguments of subprocess.Popen.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        dies_by: signal.Signals = signal.SIGTERM,
        cores: set[int] | None = None,
        **how: Any,
    ) -> None:
        self.name = name
        self.command = command
        self.log = log
        self.began = 0.0  # time.monotonic() of the last start
        self._dies_by = dies_by
        self._cores = cores
        self._how = how
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def said(self) -> str:
        """Everything that it has printed so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start it, and wait for nothing; without an environment it has this process's."""
        self.began = time.monotonic()
        with self.log.open("ab") as output:
            how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
            self._process = subprocess.Popen(
                [*_dying(self._dies_by), *self.command],
                env=environment,
                start_new_session=True,  # Ctrl+C is for the parent, which ends all in order
                **how | self._how,
            )
        if self._cores and sys.platform == "linux":
            os.sched_setaffinity(self.pid, self._cores)

    def ended(self) -> int | None:
        """The exit code of the child, once it has ended."""
        return self._process.poll() if self._process else None

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Raises Unusable, with the end of the log, when it ends before that or a minute has passed."""
        deadline = time.monotonic() + _START_SECONDS
        while not condition():
            if self.ended() is not None or time.monotonic() > deadline:
                end = self.said[-_LOG_CHARACTERS:].strip()
                raise Unusable(f"{self.name} did not start. Its log, {self.log}, ends with:\n{end}")
            time.sleep(_LOOK_AGAIN_SECONDS)

    def stop(self, number: signal.Signals = signal.SIGTERM, timeout_seconds: float = 30) -> None:
        """Send a signal and wait; kill it, and its session, when it is still there after that time."""
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL to it and all processes of its session, as when the machine dies."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()


def _dying(by: signal.Signals) -> list[str]:
    """What runs a command so that it gets this signal when its parent ends.

    Not by code between fork and exec: in a parent with threads that may wait for a lock for ever.
    """
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", by.name.removeprefix("SIG"), "--"] if setpriv else []


def children(pid: int) -> list[int]:
    """The processes that this one has started and that are alive (Linux); none once it has ended."""
    found: list[int] = []
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, listed.read_text(encoding="ascii").split())
    return found


def workers(pid: int) -> list[int]:
    """The workers of a service: its children but for the background process. That is known by its priority,
    which it lowers soon after it begins: until then this waits."""
    while True:
        niced = set(background(pid))
        found = set(children(pid)) - niced
        settled_seconds = _NICED_WITHIN_SECONDS if niced else _BEGUN_WITHIN_SECONDS
        if len(found) < 2 or all(_age_seconds(child) > settled_seconds for child in found):
            return sorted(found)
        time.sleep(0.05)


def background(pid: int) -> list[int]:
    """The background process of a service, which lowers its priority when it begins."""
    found = []
    for child in children(pid):
        with contextlib.suppress(ProcessLookupError):
            if os.getpriority(os.PRIO_PROCESS, child) > os.getpriority(os.PRIO_PROCESS, pid):
                found.append(child)
    return found


def _age_seconds(pid: int) -> float:
    """How long ago it began; infinite for one that has ended."""
    try:
        return time.time() - Path(f"/proc/{pid}").stat().st_ctime
    except OSError:
        return float("inf")


def family(pid: int) -> Iterator[int]:
    """The process and its descendants."""
    yield pid
    for child in children(pid):
        yield from family(child)


def reply_to(sent: bytes, address: Path | tuple[str, int]) -> bytes:
    """The first bytes with which a server replies, at most 16; none when it does not."""
    try:
        with socket.socket(socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET) as connection:
            connection.settimeout(2)
            connection.connect(str(address) if isinstance(address, Path) else address)
            connection.sendall(sent)
            return connection.recv(16)
    except OSError:
        return b""


def status_of(port: int, path: str) -> int:
    """The status that a GET is answered with; 0 when there is no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
