"""Log events for the start and the end of bans and store failures; one line a second for each kind."""

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
    """Failures with one reason. `left_out` were not logged since `logged_at`; monotonic seconds."""

    began: float
    logged_at: float
    request_id: str = ""
    operation: str = ""
    left_out: int = 0


class Incidents:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, _Failures] = {}  # in the current outage, by reason, the oldest first
        self._failed_at = 0.0
        self.bans: dict[int, _Ban] = {}  # by key; every response checks whether it is empty

    def ban_began(self, caller: Caller, decision: Decision) -> None:
        until_ms = decision.binding.reset_at * 1_000
        self.bans[caller.key_id] = _Ban(caller.account_id, until_ms)
        seconds = round((until_ms - decision.now_ms) / 1_000)
        _log.warning("ban began", account=caller.account_id, key=caller.key_id, seconds=seconds)

    def answered(self, caller: Caller, decision: Decision) -> None:
        """Log the end of a ban; before its time it was lifted by an operator."""
        if not decision.banned and (ban := self.bans.get(caller.key_id)) is not None:
            self._ban_ended(caller.key_id, ban, "time" if ban.until_ms <= decision.now_ms else "pardon")

    def store_failed(self, reason: str, request_id: str, operation: str) -> None:
        """One 503. The first is logged at once, then one line a second has the number left out."""
        now = self._clock.monotonic()
        self._failed_at = now
        failures = self._failures.get(reason)
        if failures is None:
            if len(self._failures) >= _KINDS_MAX:
                return
            failures = self._failures[reason] = _Failures(now, now - _LINE_EVERY_SECONDS)
        failures.request_id, failures.operation = request_id, operation
        failures.left_out += 1
        self._log_failures(reason, failures, now)

    def check(self) -> None:
        """Log failures that were left out, and the end of bans and outages; call it once a second."""
        now, now_ms = self._clock.monotonic(), self._clock.now_ms()
        for key, ban in list(self.bans.items()):
            if ban.until_ms <= now_ms:
                self._ban_ended(key, ban, "time")
        for reason, failures in self._failures.items():
            if failures.left_out:
                self._log_failures(reason, failures, now)
        if self._failures and now - self._failed_at >= _QUIET_SECONDS:
            began = next(iter(self._failures.values())).began
            self._failures.clear()
            _log.info("store available again", seconds=round(self._failed_at - began, 3))

    def _log_failures(self, reason: str, failures: _Failures, now: float) -> None:
        if now - failures.logged_at < _LINE_EVERY_SECONDS:
            return
        _log.warning(
            "store unavailable",
            request_id=failures.request_id,
            operation=failures.operation,
            reason=reason,
            left_out=failures.left_out - 1,
        )
        failures.logged_at, failures.left_out = now, 0

    def _ban_ended(self, key: int, ban: _Ban, by: str) -> None:
        del self.bans[key]
        _log.info("ban ended", account=ban.account, key=key, by=by)
