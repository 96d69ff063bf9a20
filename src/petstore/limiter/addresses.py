"""Failed authentications by client address, so that guessing keys is slow and never hurts a valid key.

Bounded: at most 100,000 addresses are remembered; the one whose window opened first is forgotten first. Not
kept over a restart.
"""

from __future__ import annotations

from ipaddress import IPv6Address

from petstore.addresses import UNKNOWN, parse_address
from petstore.clock import Clock
from petstore.quota import AddressBucket, Decision, decide_address

_REMEMBERED = 100_000
_IPV6_NETWORK_BITS = 64


def bucket_name(address: str) -> str:
    """The bucket of an address: itself, or its /64 for IPv6, since one subscriber owns all of that."""
    parsed = parse_address(address)
    if isinstance(parsed, IPv6Address):
        return f"{int(parsed) >> _IPV6_NETWORK_BITS:x}/64"
    return str(parsed) if parsed is not None else UNKNOWN


class AddressLimiter:
    """Buckets in memory, in the order in which their current windows opened."""

    def __init__(self, clock: Clock, per_minute: int) -> None:
        self._clock = clock
        self._per_minute = per_minute
        self._buckets: dict[str, AddressBucket] = {}

    def charge(self, address: str) -> Decision:
        """Count one failed authentication; not allowed when the address has used up its window."""
        name = bucket_name(address)
        bucket = self._buckets.get(name) or AddressBucket()
        opened_ms = bucket.opened_ms
        decision = decide_address(bucket, self._per_minute, self._clock.now_ms(), charge=True)
        if bucket.opened_ms != opened_ms:
            self._remember(name, bucket)
        return decision

    def peek(self, address: str) -> Decision:
        """The address's window as it stands; counts and remembers nothing."""
        bucket = self._buckets.get(bucket_name(address)) or AddressBucket()
        return decide_address(bucket, self._per_minute, self._clock.now_ms(), charge=False)

    def _remember(self, name: str, bucket: AddressBucket) -> None:
        """Put it last, or an address known for long would be forgotten in a minute that it has used up."""
        if self._buckets.pop(name, None) is None and len(self._buckets) >= _REMEMBERED:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[name] = bucket
