"""The pages that have a picture, and the store that they show."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from petstore.core.clock import SystemClock
from petstore.core.people import Role
from petstore.storage.backend import backend_for
from tools.demo.making import make
from tools.servers.petstore import Petstore
from tools.servers.ports import free_port

SEED, DAYS = 1, 70
_ACTOR = "cli:demo"


class Scene(NamedTuple):
    """A picture's name, the address below /console that it shows, and who looks at it."""

    name: str
    address: str
    role: Role = Role.STAFF


SCENES: Sequence[Scene] = (
    Scene("overview", ""),
    Scene("animals", "pets?q=be&status=available"),
    Scene("animal", "pets/227"),
    Scene("orders", "orders"),
    Scene("order", "orders/138"),
    Scene("stock", "stock"),
    Scene("account", "accounts/5", Role.OPERATOR),
    Scene("journal", "journal", Role.OPERATOR),
)


@contextmanager
def served_store() -> Iterator[tuple[int, dict[Role, str]]]:
    """A server of a new store: its port, and the token of a session of each role. Raises Unusable."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tokens = _make_store(folder / "petstore.db")
        settings = {"database_url": f"sqlite:///{folder}/petstore.db", "console": "on", "access_log": "off"}
        server = Petstore("petstore", free_port(), settings, folder / "log")
        server.start()
        try:
            yield server.port, tokens
        finally:
            server.stop()


def _make_store(database: Path) -> dict[Role, str]:
    """The store of `make demo` in a file that does not exist yet, and people."""

    async def people() -> dict[Role, str]:
        clock = SystemClock()
        url = f"sqlite:///{database}"
        await make({"PETSTORE_DATABASE_URL": url}, SEED, DAYS, clock.now_ms(), lambda: None)
        store = backend_for(url).open(clock)
        try:
            tokens = {}
            for name, role in (("anna", Role.STAFF), ("olga", Role.OPERATOR)):
                link = await store.people.add(name, role, _ACTOR)
                tokens[role] = await store.sign_ins.redeem(link.token, "no hash", "127.0.0.1")
            return tokens
        finally:
            await store.close()

    return asyncio.run(people())
