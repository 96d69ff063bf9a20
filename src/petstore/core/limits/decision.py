"""What a request is told about its limits: Decisions, as numbers that a reply can be written from.

Who decides is quota.py, how a Decision looks in headers is api/pipeline/response.py's. Specification: Limits.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from petstore.core.versions import NO_VERSIONS, Versions

DAY_SECONDS = 86_400


class Window(msgspec.Struct, frozen=True, gc=False):
    """One window as a client sees it. `reset_at` is the Unix time, in seconds, at which it starts anew."""

    name: str
    limit: int
    seconds: int
    remaining: int
    reset_at: int


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Whether a request of an account may pass, with everything that a client is told about it.

    The numbers of both windows are `Window`'s; they stand here one by one, since every request has a Decision
    and hardly any is looked at as Windows. `minute_binds`: the minute is what stops the client first, and not
    the day; least remaining, on a tie the later reset. `retry_after_seconds` is 0 when it may pass. `banned`
    tells a ban from a used-up window, `ban_began` the one refusal that began it. `versions` are those of a
    moment after the request arrived: what was kept under them is still true.
    """

    allowed: bool
    now_ms: int
    versions: Versions
    per_minute: int
    minute_remaining: int
    minute_reset_at: int
    per_day: int
    day_remaining: int
    day_reset_at: int
    minute_binds: bool
    retry_after_seconds: int = 0
    banned: bool = False
    ban_began: bool = False

    @property
    def windows(self) -> tuple[Window, Window]:
        """The minute and the day."""
        return (
            Window("minute", self.per_minute, 60, self.minute_remaining, self.minute_reset_at),
            Window("day", self.per_day, DAY_SECONDS, self.day_remaining, self.day_reset_at),
        )

    @property
    def binding(self) -> Window:
        """The window that stops the client first."""
        minute, day = self.windows
        return minute if self.minute_binds else day


class AddressDecision(msgspec.Struct, frozen=True, gc=False):
    """The same for a client without a valid key, who has an address and no account.

    It is never banned, and has nothing to be answered from what is kept.
    """

    allowed: bool
    now_ms: int
    binding: Window
    retry_after_seconds: int = 0
    banned: ClassVar[bool] = False
    ban_began: ClassVar[bool] = False
    versions: ClassVar[Versions] = NO_VERSIONS


AnyDecision = Decision | AddressDecision
