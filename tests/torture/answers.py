"""What the service answers to the same requests: python -m tests.torture.answers FILE [--postgres]

The requests come from a seed, hostile ones among them, and the clock is steered. Run it in two checkouts and
compare the files: where behaviour is to stay, they are equal byte for byte.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from tests.support.clock import ManualClock
from tests.support.postgres import fresh_database
from tests.support.service import open_shop

_NAMES = ("Rex", "", "é", "\x00", "\x9b", "n" * 256, 5, None, "a\nb")
_CATEGORIES = (1, 2, "x", 1.5, 2**63)
_STATUSES = ("available", "sold", "lost", None)
_TARGETS = (
    *("/v1/pets", "/v1/pets?limit=3", "/v1/pets?limit=0", "/v1/pets?status=sold", "/v1/pets?status=x"),
    *("/v1/pets?cursor=zzz", "/v1/pets?id=1&id=3", "/v1/pets?limit=%ff", "/v1/pets?" + "x" * 9_000),
    *("/v1/pets/1", "/v1/pets/99999", "/v1/pets/abc", "/v1/pets/%31", "/v1//pets", "/V1/pets", "/v1/pets/"),
    *("/v1", "/", "/docs", "/docs/deprecation", "/openapi.yaml", "/openapi.json", "/static/pages.css"),
    *("/nothing", "/healthz", "/%68ealthz"),
)
_HEADERS: tuple[tuple[str, str | None], ...] = (
    *(
        ("origin", "https://a.example"),
        ("accept", "text/html"),
        ("x-forwarded-for", "1.2.3.4"),
        ("host", None),
    ),
    *(("authorization", "Basic x"), ("idempotency-key", "k1"), ("idempotency-key", "\x7f")),
    *(("content-encoding", "gzip"), ("x-big", "y" * 17_000)),
)
_TYPES = (*["application/json"] * 8, "text/plain", "application/json; charset=utf-8")


class Requests:
    """An endless list of requests, the same for the same seed."""

    def __init__(self, seed: int, keys: tuple[str, str]) -> None:
        self._chance = random.Random(seed)
        self._keys = keys

    def __next__(self) -> tuple[str, str, list[tuple[str, str | None]], bytes]:
        """Method, target, headers and body."""
        chance = self._chance
        method = chance.choice(("GET",) * 6 + ("POST",) * 3 + ("HEAD", "OPTIONS", "PUT", "DELETE"))
        target = chance.choice(_TARGETS)
        headers = [chance.choice(_HEADERS)] if chance.random() < 0.7 else []
        body = b""
        if method == "POST":
            target = chance.choice(("/v1/pets",) * 8 + (target,))
            headers.append(("content-type", chance.choice(_TYPES)))
            body = self._body()
        who = chance.random()
        if who < 0.95:
            key = self._keys[0] if who < 0.7 else self._keys[1] if who < 0.9 else "pets_live_wrong"
            headers.append(("authorization", f"Bearer {key}"))
        return method, target, headers, body

    def _body(self) -> bytes:
        chance = self._chance
        if chance.random() < 0.03:
            return b"x" * 70_000
        animal: dict[str, object] = {"name": "Rex", "categoryId": chance.randrange(9)}
        if chance.random() < 0.3:
            animal = {
                "name": chance.choice(_NAMES),
                "categoryId": chance.choice(_CATEGORIES),
                "status": chance.choice(_STATUSES),
            }
        elif chance.random() < 0.1:
            animal["id"] = 1
        body = json.dumps(animal).encode()
        return body[:-1] if chance.random() < 0.05 else body


async def record(file: Path, seed: int, count: int, *, postgres: bool) -> Counter[int]:
    """Write a line for each answer; how many of them had which status."""
    seen: Counter[int] = Counter()
    with (
        fresh_database() if postgres else nullcontext() as url,
        tempfile.TemporaryDirectory() as folder,
        file.open("w", encoding="utf-8") as lines,
    ):
        settings = {"database_url": url} if url else {}
        async with open_shop(Path(folder), ManualClock(), **settings) as shop:
            free, _ = await shop.open_account("small", "free")
            requests = Requests(seed, (shop.key, free))
            for number in range(count):
                method, target, headers, body = next(requests)
                headers.append(("x-request-id", f"r{number}"))
                answer = await shop.call(method, target, headers, body, client=f"10.0.0.{number % 200}")
                seen[answer.status] += 1
                told = [pair for pair in answer.raw_headers if pair[0] != "date"]
                digest = hashlib.sha256(answer.body).hexdigest()
                lines.write(json.dumps([number, method, target[:60], answer.status, told, digest]) + "\n")
    return seen


def main() -> int:
    """Record; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.answers", description=__doc__)
    parser.add_argument("file", type=Path, help="where to write one line for each answer")
    parser.add_argument("--seed", type=int, default=1, help="of the requests (default: 1)")
    parser.add_argument("--count", type=int, default=20_000, help="how many requests (default: 20,000)")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL instead of SQLite")
    arguments = parser.parse_args()
    seen = asyncio.run(record(arguments.file, arguments.seed, arguments.count, postgres=arguments.postgres))
    sys.stdout.write(", ".join(f"{count} x {status}" for status, count in sorted(seen.items())) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
