"""A service on PostgreSQL while one of the server's processes is killed, as the kernel does for memory."""

from __future__ import annotations

import os
import signal

from tests.support.postgres import PostgresServer, run
from tests.support.service import Shop
from tests.support.waiting import wait_for

_SERVICE_UNAVAILABLE = 503
_ATTEMPTS = 20
_REINITIALISED = "all server processes terminated; reinitializing"
# The transaction's identifier reaches no disk, so the server gives it out again after its recovery.
_ROLLED_BACK = "BEGIN; INSERT INTO pets (name, category_id, status) VALUES ('x', 1, 'sold'); ROLLBACK"
_ADDED = "INSERT INTO pets (name, category_id, status) VALUES ('added', 1, 'sold')"
_PROCESS = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
    " AND datname = current_database() LIMIT 1"
)


class Crashes:
    """Rounds of a crash between a rollback and a commit by somebody else."""

    def __init__(self, server: PostgresServer, url: str, shop: Shop) -> None:
        self._server = server
        self._url = url
        self._shop = shop
        self._rounds = 0

    async def round(self) -> list[str]:
        """One round: what the service answered that was no longer true.

        In every other one the service has no turn between the list that is kept and the commit after the
        crash: it commits nothing itself, and learns of its broken connections only with the request that
        follows. In the others it has connected again before that commit.
        """
        self._rounds += 1
        key, key_id = await self._shop.open_account(f"account-{self._rounds}", "enterprise", 10**6, 10**6)
        run(self._url, _ROLLED_BACK)
        for secret in (self._shop.key, key, self._shop.key, key):
            before = await self._list(secret)
            assert before[0] == 200, before
        self.crash()
        if self._rounds % 2 == 0:
            assert await self._list(self._shop.key) == before
        run(
            self._url,
            f"BEGIN; {_ADDED}; UPDATE api_keys SET revoked_at_ms = 1 WHERE id = {key_id}; COMMIT",
        )
        after = await self._list(self._shop.key)
        refused = await self._list(key)
        faults = []
        if after != (200, before[1] + 1):
            faults.append(f"round {self._rounds}: {before[1]} animals, one more was added, then {after}")
        if refused[0] != 401:
            faults.append(f"round {self._rounds}: a revoked key was answered {refused[0]}")
        return faults

    def crash(self) -> None:
        """Kill a process of the service's connections, and wait until the server has recovered."""
        child = self._server.child
        before = child.said.count(_REINITIALISED)
        os.kill(run(self._url, _PROCESS)[0][0], signal.SIGKILL)
        wait_for(lambda: child.said.count(_REINITIALISED) > before, "PostgreSQL to notice the crash")
        self._server.await_answers()

    async def _list(self, key: str) -> tuple[int, int]:
        """The status, and how many animals there are that were sold."""
        for _ in range(_ATTEMPTS):
            answer = await self._shop.ask("GET", "/v1/pets?status=sold&limit=100", key=key)
            if answer.status != _SERVICE_UNAVAILABLE:
                break
        return answer.status, len(answer.json()) if answer.status == 200 else 0
