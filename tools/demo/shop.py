"""The store while the demo is made: the service in process, its commands, and a clock that the demo moves.

Everything goes through the public interfaces: requests with a key, and `petstore` commands.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from click.testing import CliRunner

from petstore import config
from petstore.cli.context import Session
from petstore.cli.main import petstore
from petstore.wiring.application import Application
from tools.exchanges import send


class Failed(Exception):
    """A request or a command of the demo was refused: the demo does not fit the program."""


class SteeredClock:
    """Implements petstore.core.clock.Clock: the time of day goes where the demo moves it, forward only."""

    monotonic = staticmethod(time.perf_counter)

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def pinned_ms(self) -> int:
        return self._now_ms

    def move_to(self, now_ms: int) -> None:
        """Go on to a moment; an earlier one changes nothing."""
        self._now_ms = max(self._now_ms, now_ms)


class Shop:
    """The running service and its commands, at the time of `clock`."""

    def __init__(self, application: Application, clock: SteeredClock, environment: dict[str, str]) -> None:
        self._application = application
        self._environment = environment
        self.clock = clock

    async def ask(
        self, key: str, method: str, target: str, document: object = None, *, expect: Sequence[int]
    ) -> Any:
        """One request with a key: the body of the answer as data. Raises Failed for another status."""
        body = b"" if document is None else json.dumps(document).encode()
        headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {key}".encode())]
        if document is not None:
            headers.append((b"content-type", b"application/json"))
        status, _, content = await send(self._application, method, target.encode("ascii"), headers, body)
        if status not in expect:
            raise Failed(f"{method} {target} was answered {status}: {content.decode()}")
        return json.loads(content) if content else None

    async def holds_anything(self) -> bool:
        """Whether there are accounts."""
        return bool(json.loads(await self.run("accounts", "list", "--json")))

    async def run(self, *arguments: str, given: str | None = None) -> str:
        """What a `petstore` command writes to standard output. Raises Failed when it fails."""
        return await asyncio.to_thread(self._run, arguments, given)

    def _run(self, arguments: Sequence[str], given: str | None) -> str:
        others = dict.fromkeys(name for name in os.environ if name.startswith("PETSTORE_"))
        runner = CliRunner(env={**others, **self._environment})  # None: without it
        result = runner.invoke(petstore, list(arguments), input=given, obj=Session(self.clock))
        if result.exit_code != 0:
            raise Failed(f"petstore {' '.join(arguments)} ended with {result.exit_code}: {result.output}")
        return str(result.stdout)


@asynccontextmanager
async def open_shop(environment: Mapping[str, str], clock: SteeredClock) -> AsyncIterator[Shop]:
    """The service on the database of `environment`, which holds settings by their names."""
    settings = {"PETSTORE_ACCESS_LOG": "off", "PETSTORE_LOG_LEVEL": "error", **environment}
    application = Application(config.load(settings), clock)
    await application.start()
    try:
        yield Shop(application, clock, settings)
    finally:
        await application.stop()
