"""The Decision about one request. quota.py makes it; api/pipeline/response.py writes its headers."""

from __future__ import annotations

import msgspec

from petstore.core.durations import DAY_SECONDS
from petstore.core.versions import Versions


class Window(msgspec.Struct, frozen=True, gc=False):
    """One window as a client sees it."""

    name: str
    limit: int  # requests that the plan allows in it
    seconds: int  # its length
    remaining: int
    reset_at: int  # Unix time in seconds at which it starts anew


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Whether a request of an account may pass, and all that its response says about limits."""

    allowed: bool  # counted in both windows; a refused request is counted in neither
    now_ms: int  # Unix time of the decision by the clock of the counters: with Valkey, the server's
    versions: Versions  # read after the request arrived: values cached under them are current
    per_minute: int  # the plan's limit, in requests
    minute_remaining: int  # requests after this one, never below 0; 0 during a ban
    minute_reset_at: int  # Unix time in seconds; during a ban its end
    per_day: int  # the plan's limit, in requests
    day_remaining: int  # as for the minute
    day_reset_at: int  # Unix time in seconds, a UTC midnight; during a ban its end
    minute_binds: bool  # the minute, not the day, has less remaining; on a tie, the later reset
    retry_after_seconds: int = 0  # a retry then succeeds: at least 1 for a refusal, 0 when allowed
    banned: bool = False  # refused by a ban of the key, not by a used-up window
    ban_began: bool = False  # the one refusal that began the ban

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
    """Whether a request without a valid key may have its 401, by the window of its client's address."""

    allowed: bool
    now_ms: int
    binding: Window
    retry_after_seconds: int = 0  # at least 1 for a refusal, 0 when allowed
