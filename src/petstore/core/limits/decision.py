"""The Decision about one request. quota.py makes it; api/pipeline/response.py writes its headers."""

from __future__ import annotations

import msgspec

from petstore.core.limits.plans import WINDOWS
from petstore.core.versions import Versions


class Window(msgspec.Struct, frozen=True, gc=False):
    """One window as a client sees it."""

    name: str
    limit: int  # requests that the plan allows in it
    seconds: int  # its length
    remaining: int
    reset_at: int  # Unix time in seconds at which it starts anew


class UsedWindow(Window, frozen=True, gc=False):
    """A Window with its use, for staff."""

    used: int  # requests; more than the limit when that was lowered


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Whether a request of an account may pass, and all that its response says about limits.

    Tuples are in the order of plans.WINDOWS.
    """

    allowed: bool  # counted in all windows; a refused request is counted in none
    now_ms: int  # Unix time of the decision by the clock of the counters: with Valkey, the server's
    versions: Versions  # read after the request arrived: values cached under them are current
    limits: tuple[int, ...]  # the plan's, in requests
    remaining: tuple[int, ...]  # requests after this one, never below 0; 0 during a ban
    reset_at: tuple[int, ...]  # Unix time in seconds; during a ban its end
    binding_index: int  # index of the window with the least remaining; on a tie, the latest reset
    retry_after_seconds: int = 0  # a retry then succeeds: at least 1 for a refusal, 0 when allowed
    banned: bool = False  # refused by a ban of the key, not by a used-up window
    ban_began: bool = False  # the one refusal that began the ban

    @property
    def windows(self) -> list[Window]:
        """The windows from the shortest to the longest, the UTC day."""
        return [
            Window(kind.name, limit, kind.seconds, remaining, reset_at)
            for kind, limit, remaining, reset_at in zip(
                WINDOWS, self.limits, self.remaining, self.reset_at, strict=True
            )
        ]

    @property
    def binding(self) -> Window:
        """The window that stops the client first."""
        return self.windows[self.binding_index]


class AddressDecision(msgspec.Struct, frozen=True, gc=False):
    """Whether a request without a valid key may have its 401, by the window of its client's address."""

    allowed: bool
    now_ms: int
    binding: Window
    retry_after_seconds: int = 0  # at least 1 for a refusal, 0 when allowed
