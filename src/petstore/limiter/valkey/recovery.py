"""The records that are restored to a Valkey without data or with older data.

They are the store's, about a second old, merged with later ones from Valkey's replies to this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec.structs import astuple

from petstore.core.clock import Clock
from petstore.core.errors import StoreUnavailable
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState, MergingCounterStore
from petstore.core.limits.windows import AccountWindows, later_windows

# The records of an account and a key, as take.lua reads them.
RecoveryRecords = tuple[bytes, bytes]
# After a restart of Valkey all active accounts need their records at once, and the store has other work.
_READS_MAX = 16
_WAIT_SECONDS = 5.0
_NOTHING_USED = AccountWindows()
_NEVER_REFUSED = b"-"


def as_text(numbers: Iterable[int]) -> bytes:
    """A record's numbers as take.lua reads them."""
    return " ".join(map(str, numbers)).encode("ascii")


class RecoveryCache:
    """Remembers the records in Valkey's replies and hands them to the flusher in batches."""

    def __init__(self, clock: Clock, counters: MergingCounterStore) -> None:
        self._clock = clock
        self._counters = counters
        self._noted, self._unsaved = LimiterState(), LimiterState()
        self._slots = asyncio.Semaphore(_READS_MAX)
        self._reading: dict[tuple[int, int, int], asyncio.Task[RecoveryRecords]] = {}

    def note_windows(self, account_id: int, windows: AccountWindows) -> None:
        self._noted.windows[account_id] = windows

    def note_ban(self, key_id: int, ban: BanState) -> None:
        """Remember a ban. Refusals that lead to one are not saved."""
        self._noted.bans[key_id] = ban

    def drain(self) -> LimiterState:
        """The records that were remembered since the last call."""
        batch, self._noted = self._noted, LimiterState()
        self._unsaved.update(batch)
        return batch

    def saved(self) -> None:
        """All batches are in the store."""
        self._unsaved = LimiterState()

    async def restore(self, caller: Caller, epoch: int) -> RecoveryRecords:
        """The records of this account and this key. Raises StoreUnavailable.

        Simultaneous calls of one epoch share one read of the store: it began after the epoch.
        """
        asked = (caller.account_id, caller.key_id, epoch)
        task = self._reading.get(asked)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._read(caller.account_id, caller.key_id))
            self._reading[asked] = task
            task.add_done_callback(lambda _: self._reading.pop(asked, None))
        return await asyncio.shield(task)

    async def _read(self, account_id: int, key_id: int) -> RecoveryRecords:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._slots.acquire()
        except TimeoutError:
            raise StoreUnavailable("Too many accounts wait for their counts. Try again soon.") from None
        try:
            # The store may write a batch, and `saved` drop it here, after the rows were read.
            batches = [self._unsaved, self._noted]
            windows, ban = await self._counters.load_for(self._clock.now_ms(), account_id, key_id)
        finally:
            self._slots.release()
        used = windows or _NOTHING_USED
        for batch in (*batches, self._unsaved, self._noted):
            used = later_windows(used, batch.windows.get(account_id, _NOTHING_USED))
            seen = batch.bans.get(key_id)
            if seen is not None and (ban is None or seen.banned_until_ms > ban.banned_until_ms):
                ban = seen
        return as_text(used.numbers()), _NEVER_REFUSED if ban is None else as_text(astuple(ban))
