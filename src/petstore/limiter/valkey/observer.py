"""Events of the limiter in Valkey, for metrics and the log."""

from __future__ import annotations

from typing import Protocol


class LimiterObserver(Protocol):
    """Called on the event loop, some of it for every request: must be quick."""

    def outage_began(self, reason: str) -> None:
        """Valkey is out of reach from now on."""

    def outage_ended(self) -> None:
        """A new connection works."""

    def decided_locally(self) -> None:
        """One request of an outage was decided by this process alone, or refused."""

    def asked(self, seconds: float) -> None:
        """One round trip."""

    def another_data_set(self, *, known: bool) -> None:
        """The server started or became the primary: each account and key is read from the store once more.

        Not `known`: it refuses INFO, so every new connection is taken for such a start.
        """

    def keeps_snapshots_only(self) -> None:
        """The server writes no log: a restart brings back older counts."""

    def clocks_differ(self, seconds: float) -> None:
        """The server's clock is `seconds` ahead of this machine's (negative: behind).

        Called once, and again only after the clocks have agreed in between.
        """


class NoObserver:
    """Ignores all events."""

    def outage_began(self, reason: str) -> None: ...

    def outage_ended(self) -> None: ...

    def decided_locally(self) -> None: ...

    def asked(self, seconds: float) -> None: ...

    def another_data_set(self, *, known: bool) -> None: ...

    def keeps_snapshots_only(self) -> None: ...

    def clocks_differ(self, seconds: float) -> None: ...
