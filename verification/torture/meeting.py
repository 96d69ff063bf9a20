"""A stock list that staff send to one program at its console, and that another program stores."""

from __future__ import annotations

import asyncio
import http.client
import time
from collections.abc import Callable, Iterable, Sequence

from tests.support.cluster import Client, walk
from tests.support.console import Shown, Visitor
from tests.support.service import Answer, Pairs
from tests.support.waiting import pause

_ROWS = 3_000
_WITHIN_SECONDS = 150  # a program waits for a minute before it takes what another one has left
_PASSWORD = "correct horse battery staple"


class _Site:
    """Stands for a Shop: the server at a port."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def call(self, method: str, target: str, headers: Pairs, body: bytes, *, client: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request(method, target, body, {name: value or "" for name, value in headers})
            answer = connection.getresponse()
            sent = [(name.lower().encode(), value.encode()) for name, value in answer.getheaders()]
            return Answer(answer.status, sent, answer.read())
        finally:
            connection.close()


class Staff:
    """Somebody at the console, whichever program serves it. `people` is the command of a program."""

    def __init__(self, people: Callable[..., str], port: int) -> None:
        link = people("people", "add", f"staff-{time.monotonic_ns()}", "--role", "staff").strip()
        self._visitor = Visitor(_Site(port))  # type: ignore[arg-type]
        shown = self._get(link.partition("/console/")[2])
        asyncio.run(self._visitor.submit(shown, "", password=_PASSWORD, again=_PASSWORD))
        self._path = self._name = ""

    def send(self, port: int) -> None:
        """Send a list of new animals, and do not wait for its check."""
        self._go_to(port)
        self._name = f"listed-{time.monotonic_ns()}"
        rows = "".join(f"{self._name} {number},1\n" for number in range(_ROWS))
        fields = self._get("stock").form("stock").fields
        content = f"name,categoryId\n{rows}".encode()
        sending = self._visitor.send_file("stock", "list", content, fields, file="stock.csv")
        self._path = asyncio.run(sending).address.removeprefix("/console/")

    def store(self, port: int) -> None:
        """Have the list stored, and checked before where that did not come to its end.

        Raises AssertionError when it is not stored in time.
        """
        self._go_to(port)
        ends = time.monotonic() + _WITHIN_SECONDS
        while "Stored by" not in (shown := self._get(self._path)).text:
            assert time.monotonic() < ends, f"a list is not stored: {shown.text}"
            for step in ("/store", "/check"):
                if any(form.action.endswith(step) for form in shown.forms):
                    asyncio.run(self._visitor.submit(shown, step))
                    break
            pause(0.2)

    def missing(self, clients: Iterable[Client]) -> int:
        """How many animals of the last list are not there once."""
        kept: Sequence[str] = [pet["name"] for pet in walk(list(clients))]
        found = [name for name in kept if name.startswith(f"{self._name} ")]
        return abs(_ROWS - len(found)) + len(found) - len(set(found))

    def _go_to(self, port: int) -> None:
        self._visitor.shop = _Site(port)  # type: ignore[assignment]

    def _get(self, path: str) -> Shown:
        return asyncio.run(self._visitor.get(path))
