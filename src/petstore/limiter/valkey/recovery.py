"""What a Valkey with an older data set, or none, is given back: the store's counts, or this process's own
where they are later.

The store is about a second behind; what this process has seen and not written yet closes its part of that.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import astuple

from petstore.core.clock import Clock
from petstore.core.errors import StoreUnavailable
from petstore.core.keys import Caller
from petstore.core.limits.bans import BanState
from petstore.core.limits.counters import LimiterState, MergingCounterStore
from petstore.core.limits.windows import AccountWindows

RecoveryRecords = tuple[bytes, bytes]
# After a restart all active accounts are asked for at once, and the counter store has other work.
_AT_A_TIME = 16
_WAIT_SECONDS = 5.0
_NOTHING_USED = AccountWindows()
_NEVER_MISBEHAVED = b"-"


def later_windows(one: AccountWindows, other: AccountWindows) -> AccountWindows:
    """Of two records of an account: the newer window of each kind, of the same window the greater count."""
    minute = max((one.minute_opened_ms, one.minute_used), (other.minute_opened_ms, other.minute_used))
    day = max((one.day, one.day_used), (other.day, other.day_used))
    return AccountWindows(*minute, *day)


def as_text(record: AccountWindows | BanState) -> bytes:
    """As the script reads it: its numbers, in their order."""
    return " ".join(map(str, astuple(record))).encode("ascii")


class RecoveryCache:
    """Notes what replies say, hands it to the flusher in batches, and knows what the store does not have."""

    def __init__(self, clock: Clock, counters: MergingCounterStore) -> None:
        self._clock = clock
        self._counters = counters
        self._now, self._unsaved = LimiterState(), LimiterState()
        self._places = asyncio.Semaphore(_AT_A_TIME)
        self._restoring: dict[tuple[int, int, int], asyncio.Task[RecoveryRecords]] = {}

    def note_windows(self, account_id: int, windows: AccountWindows) -> None:
        """An account's counts, as they are now."""
        self._now.windows[account_id] = windows

    def note_ban(self, key_id: int, ban: BanState) -> None:
        """A key's ban; of a key's standing nothing else is worth a row in the counter store."""
        self._now.bans[key_id] = ban

    def drain(self) -> LimiterState:
        """What was noted since the last call."""
        batch, self._now = self._now, LimiterState()
        self._unsaved.update(batch)
        return batch

    def saved(self) -> None:
        """The counter store has every batch."""
        self._unsaved = LimiterState()

    async def restore(self, caller: Caller, epoch: int) -> RecoveryRecords:
        """What to give the script for this account and this key. Raises StoreUnavailable.

        Requests of one epoch that ask at the same time share one answer: the question came after it began.
        """
        place = (caller.account_id, caller.key_id, epoch)
        task = self._restoring.get(place)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask(caller.account_id, caller.key_id))
            self._restoring[place] = task
            task.add_done_callback(lambda _: self._restoring.pop(place, None))
        return await asyncio.shield(task)

    async def _ask(self, account_id: int, key_id: int) -> RecoveryRecords:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._places.acquire()
        except TimeoutError:
            raise StoreUnavailable("Too many accounts wait for the ledger; try again soon.") from None
        try:
            # A batch on its way may be written, and gone from here, after the rows were read.
            batches = [self._unsaved, self._now]
            windows, ban = await self._counters.load_for(account_id, key_id, self._clock.now_ms())
        finally:
            self._places.release()
        used = windows or _NOTHING_USED
        for batch in (*batches, self._unsaved, self._now):
            used = later_windows(used, batch.windows.get(account_id, _NOTHING_USED))
            seen = batch.bans.get(key_id)
            if seen is not None and (ban is None or seen.banned_until_ms > ban.banned_until_ms):
                ban = seen
        return as_text(used), _NEVER_MISBEHAVED if ban is None else as_text(ban)
