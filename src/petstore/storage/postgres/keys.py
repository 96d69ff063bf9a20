"""The look-up of a request's key in PostgreSQL. The other queries: transactions/keys.py."""

from __future__ import annotations

from petstore.core.clock import Clock
from petstore.core.keys import Caller
from petstore.storage.postgres.coalescing import CoalescedQuery
from petstore.storage.postgres.database import Database
from petstore.transactions.keys import CALLER, Keys
from petstore.transactions.rows import SELECT_CALLER, read_caller

# PostgreSQL plans a query with an array anew each time, which takes longer than a look-up.
_ONE_CALLER = CALLER.postgres
_CALLERS = f"{SELECT_CALLER} WHERE k.digest = ANY($1::bytea[])"


class PostgresKeys(Keys):
    """Implements core.keys.KeyRepository."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._fetch = database.fetch
        # A flood of unknown keys takes one connection.
        self._finding: CoalescedQuery[bytes, dict[bytes, Caller]] = CoalescedQuery(self._find_callers)

    async def find_caller(self, key_digest: bytes) -> Caller | None:
        return (await self._finding.answer(key_digest)).get(key_digest)

    async def _find_callers(self, digests: set[bytes]) -> dict[bytes, Caller]:
        if len(digests) == 1:
            rows = await self._fetch(_ONE_CALLER, *digests)
        else:
            rows = await self._fetch(_CALLERS, list(digests))
        return {row[-1]: read_caller(row) for row in rows}
