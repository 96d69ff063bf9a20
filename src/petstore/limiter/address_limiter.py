"""Limits failed authentications by client address: guessing keys is slow, and valid keys are unaffected.

In memory for at most 100,000 addresses: the one whose window opened first goes first. A restart clears it.
"""

from __future__ import annotations

import msgspec

from petstore.core.client_address import network_of
from petstore.core.clock import Clock
from petstore.core.durations import MINUTE_MS, SECOND_MS
from petstore.core.limits.decision import AddressDecision, Window
from petstore.core.limits.windows import ceil_seconds

_ADDRESSES_MAX = 100_000


class AddressBucket(msgspec.Struct):
    """Failed authentications of one client address in its 60-second window."""

    opened_ms: int = -MINUTE_MS
    used: int = 0


def decide_address(bucket: AddressBucket, limit: int, now_ms: int, *, charge: bool) -> AddressDecision:
    """Take one failed authentication from an address's window; without `charge` only look at it."""
    age_ms = now_ms - bucket.opened_ms
    if not 0 <= age_ms < MINUTE_MS:
        bucket.opened_ms = now_ms - now_ms % SECOND_MS
        if age_ms >= MINUTE_MS:
            bucket.used = 0
    allowed = bucket.used < limit
    if charge and allowed:
        bucket.used += 1
    reset_at = bucket.opened_ms // SECOND_MS + 60
    window = Window("address", limit, 60, limit - bucket.used, reset_at)
    retry_after = 0 if allowed else max(1, ceil_seconds(reset_at * SECOND_MS - now_ms))
    return AddressDecision(allowed, now_ms, window, retry_after)


class AddressLimiter:
    """Buckets in the order in which their current windows opened."""

    def __init__(self, clock: Clock, per_minute: int) -> None:
        self._clock = clock
        self._per_minute = per_minute
        self._buckets: dict[str, AddressBucket] = {}

    def charge(self, address: str) -> AddressDecision:
        """Count one failed authentication; not allowed when the address has used up its window."""
        name = network_of(address)
        bucket = self._buckets.get(name) or AddressBucket()
        opened_ms = bucket.opened_ms
        decision = decide_address(bucket, self._per_minute, self._clock.now_ms(), charge=True)
        if bucket.opened_ms != opened_ms:
            # To the end, so that an address is not dropped within a minute that it has used up.
            if self._buckets.pop(name, None) is None and len(self._buckets) >= _ADDRESSES_MAX:
                del self._buckets[next(iter(self._buckets))]
            self._buckets[name] = bucket
        return decision

    def peek(self, address: str) -> AddressDecision:
        """The address's window as it is; changes nothing."""
        bucket = self._buckets.get(network_of(address)) or AddressBucket()
        return decide_address(bucket, self._per_minute, self._clock.now_ms(), charge=False)
