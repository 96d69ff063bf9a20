"""Bans, and failures of the store, as events with a beginning and an end. An outage is a line a second.

What is asked once a second tells the ends, since nothing happens at the moment at which a ban is over.
"""

from __future__ import annotations

import msgspec
import structlog

from petstore.core.clock import Clock
from petstore.core.keys import Caller
from petstore.core.limits.decision import Decision

_LINE_EVERY_SECONDS = 1.0
_QUIET_SECONDS = 10.0
_KINDS_MAX = 100

_log = structlog.get_logger("petstore.api")


class _Ban(msgspec.Struct):
    account: int
    until_ms: int


class _Failures(msgspec.Struct):
    """Of one kind. `left_out` were not told since `told_at`; moments are on the monotonic clock."""

    began: float
    told_at: float
    last_at: float
    request_id: str = ""
    operation: str = ""
    left_out: int = 0


class Incidents:
    """What this process has told about and not yet the end of."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, _Failures] = {}
        self.bans: dict[int, _Ban] = {}  # by key; asked for every answer whether there are any

    def ban_began(self, caller: Caller, decision: Decision) -> None:
        until_ms = decision.binding.reset_at * 1_000
        self.bans[caller.key_id] = _Ban(caller.account_id, until_ms)
        seconds = round((until_ms - decision.now_ms) / 1_000)
        _log.warning("ban began", account=caller.account_id, key=caller.key_id, seconds=seconds)

    def answered(self, caller: Caller, decision: Decision) -> None:
        """A key that is not banned any more before the time was pardoned."""
        if not decision.banned and (ban := self.bans.get(caller.key_id)) is not None:
            self._ban_ended(caller.key_id, ban, "time" if ban.until_ms <= decision.now_ms else "pardon")

    def store_failed(self, reason: str, request_id: str, operation: str) -> None:
        """A request was answered 503: told at once, and then once a second with the number left out."""
        now = self._clock.monotonic()
        failures = self._failures.get(reason)
        if failures is None:
            if len(self._failures) >= _KINDS_MAX:
                return
            failures = self._failures[reason] = _Failures(now, now - _LINE_EVERY_SECONDS, now)
        failures.last_at = now
        failures.request_id, failures.operation = request_id, operation
        failures.left_out += 1
        self._tell(reason, failures, now)

    def look(self) -> None:
        """Once a second: tell what was left out, and what is over."""
        now, now_ms = self._clock.monotonic(), self._clock.now_ms()
        for key, ban in list(self.bans.items()):
            if ban.until_ms <= now_ms:
                self._ban_ended(key, ban, "time")
        for reason, failures in list(self._failures.items()):
            if failures.left_out:
                self._tell(reason, failures, now)
            elif now - failures.last_at >= _QUIET_SECONDS:
                del self._failures[reason]
                seconds = round(failures.last_at - failures.began, 3)
                _log.info("store available again", reason=reason, seconds=seconds)

    def _tell(self, reason: str, failures: _Failures, now: float) -> None:
        if now - failures.told_at < _LINE_EVERY_SECONDS:
            return
        _log.warning(
            "store unavailable",
            request_id=failures.request_id,
            operation=failures.operation,
            reason=reason,
            left_out=failures.left_out - 1,
        )
        failures.told_at, failures.left_out = now, 0

    def _ban_ended(self, key: int, ban: _Ban, by: str) -> None:
        del self.bans[key]
        _log.info("ban ended", account=ban.account, key=key, by=by)
