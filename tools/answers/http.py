"""Records the answers of the service in process, and its metrics after that load."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tools.answers import adapter
from tools.answers.commands import START_MS, Commands, steered
from tools.answers.requests import Request, Requests

_SHOWN_BYTES = 400
_SETTINGS = {
    "PETSTORE_ACCESS_LOG": "off",
    "PETSTORE_ADDRESS_PER_MINUTE": "12",
    "PETSTORE_BAN_MINIMUM_REJECTIONS": "20",
    "PETSTORE_CORS_ORIGINS": "https://a.example",
    "PETSTORE_TRUSTED_PROXIES": "10.0.0.0/26",
    "PETSTORE_LOG_LEVEL": "error",
}
# What the database holds after the load, by command; of a minute's window that depends on the last flush.
_MINUTE = re.compile(r"^\| minute .*\n", re.MULTILINE)
_AFTERWARDS = (
    *("usage large", "usage small", "usage days", "keys list small", "keys list large --json"),
    *("pets list --limit 10000 --json", "journal --about pet:1", "db check", "keys unban 3", "usage small"),
)


def provision(environment: dict[str, str], work: Path) -> dict[str, str]:
    """Accounts and their keys, by command; the secrets by what they are."""
    commands = Commands({**environment, **steered(work, START_MS)}, work)
    commands.run("db migrate")
    for words in ("large --plan enterprise --per-minute 1000000 --per-day 9000000", "small --plan free"):
        commands.run(f"accounts add {words}")
    commands.run("accounts add days --plan enterprise --per-minute 1000 --per-day 200")
    keys = {"none": "", "wrong": "pets_live_" + "0" * 38, "malformed": "pets_live_x"}
    for name, words in (
        *(("large", "large"), ("small", "small"), ("small-2", "small"), ("days", "days")),
        *(("expired", "large --expires 1d"), ("revoked", "large")),
    ):
        keys[name] = str(json.loads(commands.run(f"keys issue {words} --json")[1])["key"])
    commands.run("keys revoke 6")
    return keys


class Recording:
    """One application, its clock and the file of answers."""

    def __init__(self, environment: dict[str, str], valkey: str | None, folder: Path, name: str) -> None:
        self._clock = adapter.ManualClock()
        self.now_ms = self._clock.now_ms
        self._valkey = adapter.Client(valkey) if valkey else None
        self._application = adapter.application(environment, self._clock)
        self._folder = folder
        self._name = name

    async def record(self, requests: Requests, count: int) -> None:
        """Send `count` requests, with a restart of the service half way."""
        self._tell_time()
        await self._application.start()
        probes = await self._probe()
        with (self._folder / f"answers-{self._name}.txt").open("w", encoding="utf-8") as lines:
            for number in range(count):
                if number == count // 2:
                    await self._application.stop()
                    await self._application.start()
                request = next(requests)
                answer = await self._send(request, number)
                if link := answer.links.get("next"):
                    requests.learn(link)
                lines.write(line(number, request, answer))
        metrics = await adapter.call(self._application, "GET", "/metrics")
        (self._folder / f"metrics-{self._name}.txt").write_text(probes + families(metrics.body.decode()))
        await self._application.stop()

    async def _probe(self) -> str:
        """Ask before the load: under a clock that jumps, /readyz depends on when counters were saved."""
        text = ""
        for path in ("/healthz", "/readyz", "/metrics"):
            for client in ("127.0.0.1", "10.0.0.1"):
                answer = await adapter.call(self._application, "GET", path, client=client)
                body = answer.body.decode() if path != "/metrics" or answer.status != 200 else ""
                text += f"{path} for {client}: {answer.status} {body}\n"
        return text

    async def _send(self, request: Request, number: int) -> adapter.Answer:
        if request.pause_ms:
            self._clock.advance(request.pause_ms / 1_000)
            self._tell_time()
        pairs: Any = [*request.headers, ("x-request-id", f"r{number}" if number % 50 else "not/allowed é")]
        return await adapter.call(
            self._application, request.method, request.target, pairs, request.body, request.client
        )

    def _tell_time(self) -> None:
        """The scripts of a copy that PATCHES changed read this hash."""
        if self._valkey is not None:
            seconds, rest = divmod(self._clock.now_ms(), 1_000)
            self._valkey("HSET", "{petstore}:clock", "seconds", seconds, "microseconds", rest * 1_000)


def line(number: int, request: Request, answer: adapter.Answer) -> str:
    """One answer: status, headers in their order, the beginning of the body and its digest."""
    body = answer.body
    headers = answer.raw_headers
    if not number % 50:  # the service makes the request's id
        made = [value for name, value in headers if name == "x-request-id"]
        headers = [(name, "<id>" if name == "x-request-id" else value) for name, value in headers]
        for value in made:
            body = body.replace(value.encode(), b"<id>")
    shown = body[:_SHOWN_BYTES].decode("utf-8", "replace")
    digest = hashlib.sha256(body).hexdigest()[:16]
    asked = f"{request.method} {request.target[:60]}"
    return json.dumps([number, asked, answer.status, headers, len(body), digest, shown]) + "\n"


def families(text: str) -> str:
    """Metrics with help, type and labels; values only of what the requests alone decide."""
    lines = []
    for row in re.sub(r'(commit|version)="[^"]*"', r'\1="…"', text).splitlines():
        sample = re.match(r"([a-z_]+)(\{.*\})? (\S+)$", row)
        counts = sample and re.search(r"requests_total|answers|bans|rejections|limit", sample[1])
        lines.append(row if not sample or counts else f"{sample[1]}{sample[2] or ''}")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Record one backend; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.answers.http", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("name", choices=("sqlite", "postgres", "valkey"))
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        temporary = stack.enter_context(tempfile.TemporaryDirectory())
        environment = {**_SETTINGS, "PETSTORE_DATABASE_URL": f"sqlite:///{temporary}/petstore.db"}
        valkey = None
        if arguments.name != "sqlite":
            environment["PETSTORE_DATABASE_URL"] = stack.enter_context(adapter.fresh_database())
            Commands(environment).run("db migrate")
        keys = provision(environment, Path(temporary))
        if arguments.name == "valkey":
            valkey = environment["PETSTORE_VALKEY_URL"] = adapter.emptied_url()
        recording = Recording(environment, valkey, arguments.folder, arguments.name)
        asyncio.run(recording.record(Requests(arguments.seed, keys), arguments.count))
        if arguments.name == "sqlite":
            work = Path(temporary)
            commands = Commands({**environment, **steered(work, recording.now_ms())}, work)
            text = "\n".join(map(commands.told, _AFTERWARDS))
            (arguments.folder / "kept-sqlite.txt").write_text(_MINUTE.sub("", text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
