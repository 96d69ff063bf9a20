"""The time in which caches may be used without asking Valkey again, and the versions that are valid in it."""

from __future__ import annotations

import msgspec

from petstore.core.clock import Clock
from petstore.core.versions import LEASE_SECONDS, NO_VERSIONS, Version, Versions
from petstore.limiter.valkey.client import ValkeyClient
from petstore.limiter.valkey.inspection import AGREE_MS


class Lease(msgspec.Struct, eq=False, gc=False):
    """A time in which caches may be used, without an outage: five seconds by this process's clock, and by the
    server's too, which goes on while this machine is suspended."""

    outages: int
    ends_seconds: float
    # Times by the server's clock: known with the first reply. Replies to earlier calls may come after it.
    begins_ms: int = 0
    ends_ms: int = 0


class Token(msgspec.Struct, frozen=True, gc=False):
    """A version that is valid within a lease."""

    number: int
    lease: Lease


class Leases:
    """The lease of this process, and the versions of Valkey's last reply."""

    def __init__(self, client: ValkeyClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._lease = Lease(client.outages, 0.0)
        self._seen: tuple[int, int, Lease] = (0, 0, self._lease)
        self._versions = NO_VERSIONS
        self._clocks_differ = False

    def of_now(self) -> Lease:
        """The lease of this moment: a new one when the last has ended, or an outage began."""
        lease, seconds, outages = self._lease, self._clock.monotonic(), self._client.outages
        if seconds >= lease.ends_seconds or lease.outages != outages:
            lease = self._lease = Lease(outages, seconds + LEASE_SECONDS)
        return lease

    def keyring_version(self) -> Version | None:
        """The keyring's version of the last reply, in the lease of this moment; None when it is unknown."""
        return Token(self._seen[1], self.of_now()) if self._seen[1] else None

    def current(self, reply: list[int], lease: Lease) -> Versions:
        """The reply's versions as tokens: the same objects until a version or the lease changes."""
        _, catalogue, keyring, server_ms, *_ = reply
        if not lease.begins_ms <= server_ms < lease.ends_ms:
            lease = self._anchored(lease, server_ms)
        seen = (catalogue, keyring, lease)
        if seen != self._seen:
            self._seen = seen
            self._versions = Versions(
                Token(catalogue, lease) if catalogue else None, Token(keyring, lease) if keyring else None
            )
        return self._versions

    def _anchored(self, lease: Lease, server_ms: int) -> Lease:
        """The lease, begun with this first reply; a new one if it has ended by the server's clock."""
        self._compare_clocks(server_ms)
        if lease.ends_ms:
            ended, lease = lease, Lease(lease.outages, lease.ends_seconds)
            if self._lease is ended:
                self._lease = lease
        length_ms = round(LEASE_SECONDS * 1_000)
        lease.begins_ms, lease.ends_ms = server_ms - length_ms, server_ms + length_ms
        return lease

    def _compare_clocks(self, server_ms: int) -> None:
        ahead_ms = server_ms - self._clock.now_ms()
        differ = abs(ahead_ms) > AGREE_MS
        if differ and not self._clocks_differ:
            self._client.observer.clocks_differ(ahead_ms / 1_000)
        self._clocks_differ = differ
