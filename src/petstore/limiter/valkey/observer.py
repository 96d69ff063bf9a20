"""What a limiter with counters elsewhere tells about its work."""

from __future__ import annotations

from typing import Protocol


class LimiterObserver(Protocol):
    """Told on the event loop; must cost next to nothing."""

    def outage_began(self, reason: str) -> None:
        """The shared counters are out of reach from now on."""
        ...

    def outage_ended(self) -> None: ...

    def decided_locally(self) -> None:
        """One request was decided by this process's share, or refused for the outage."""
        ...

    def asked(self, seconds: float) -> None:
        """One round trip."""
        ...

    def another_data_set(self, *, known: bool) -> None:
        """The server started, or became the primary: each account and key is asked of the store once more.
        Not `known`: it may not say, so that every new connection is taken for this."""
        ...

    def keeps_snapshots_only(self) -> None:
        """The server writes no log: a restart brings back older counts."""
        ...

    def clocks_differ(self, seconds: float) -> None:
        """The server's clock is so much ahead of this machine's (behind: negative); told once, not again
        until they have agreed in between."""
        ...


class NoObserver:
    """Nobody is told."""

    def outage_began(self, reason: str) -> None: ...

    def outage_ended(self) -> None: ...

    def decided_locally(self) -> None: ...

    def asked(self, seconds: float) -> None: ...

    def another_data_set(self, *, known: bool) -> None: ...

    def keeps_snapshots_only(self) -> None: ...

    def clocks_differ(self, seconds: float) -> None: ...
