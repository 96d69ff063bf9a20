"""One call from its beginning to its result: its slot, its tries, its pauses. Does no I/O.

`CallRun.steps` is a generator: it yields Send or Wait, and is sent the outcome. Two drivers carry the
steps out: _async/runner.py, and for threads _sync/runner.py, which is made of it.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from petstore_client.answers import Answer, Fault
from petstore_client.calls import Call
from petstore_client.errors import ApiError, ConfigurationError, PetstoreError, RateLimited, escaped
from petstore_client.limiter import Limiter, Permit, Waiter
from petstore_client.limits import read_limits
from petstore_client.runtime import Runtime
from petstore_client.verdicts import Failure, judge

_T = TypeVar("_T")

_FIRST_PAUSE_SECONDS = 0.5
_PAUSE_MAX_SECONDS = 30.0
_DOUBLINGS = 10
_WAIT_MAX_SECONDS = 3600.0  # then the limiter is asked again
_LEAST_SECONDS_OF_A_TRY = 1.0  # or a tenth of the call's seconds
_ADVICE = "Raise `seconds`, or call again later."
_LOGGED_SECONDS = 1.0  # the least wait with a line, and the least time between lines: waits end together
# The service keeps an Idempotency-Key for 24 hours; a repetition after that would be a second creation.
_REPEATABLE_SECONDS = 23 * 3600.0


@dataclass(frozen=True)
class Options:
    """How long a call goes on.

    It fails with its `tries`-th fault; a refusal by the limits does not count. `timeout` seconds of silence
    end a try. `seconds` bound the whole call: waits, tries, the answer. With 0 seconds a call does not wait,
    and its one try has `timeout` seconds.
    """

    tries: int = 5
    seconds: float = 300.0
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if self.tries < 1 or not self.seconds >= 0 or not 0 < self.timeout <= _WAIT_MAX_SECONDS:
            raise ConfigurationError(
                "Give at least 1 for tries, 0 for seconds, and for timeout more than 0, at most 3,600."
            )

    def with_changes(self, tries: int | None, seconds: float | None, timeout: float | None) -> Options:
        """These options, with those that are not None replaced."""
        return Options(
            self.tries if tries is None else tries,
            self.seconds if seconds is None else seconds,
            self.timeout if timeout is None else timeout,
        )


@dataclass(frozen=True)
class Send:
    """Send the call once, and come back with its Answer or Fault before `ends_at`, a monotonic time."""

    ends_at: float
    waited_seconds: float
    waited_for: str  # empty: nothing to log


@dataclass(frozen=True)
class Wait:
    """Wait until woken, at most `seconds`."""

    seconds: float


Step = Send | Wait
Outcome = Answer | Fault | None  # None after a Wait
Steps = Generator[Step, Outcome, Answer]


class CallRun(Generic[_T]):
    """One call. The limiter is shared: its lock is held during each step, not between steps."""

    def __init__(
        self, call: Call[_T], options: Options, limiter: Limiter, runtime: Runtime, waiter: Waiter
    ) -> None:
        if call.follows_at is not None:
            options = replace(options, tries=sys.maxsize, seconds=math.inf)
        self._call = call
        self._options = options
        self._limiter = limiter
        self._runtime = runtime
        self._waiter = waiter
        now = runtime.monotonic()
        # A try that is cut short leaves an unknown outcome, so each begins with time for its answer.
        self._begins_by = now + options.seconds - min(_LEAST_SECONDS_OF_A_TRY, options.seconds / 10)
        self._ends_at = now + (options.seconds or options.timeout) + call.wait_seconds
        self._idle_since = now
        self._sent = 0
        self._first_sent: tuple[float, float] | None = None  # by both clocks
        self._failed = 0
        self._unknown = False  # an earlier try may have taken place
        self._error: PetstoreError | None = None  # what ended the last try
        self._answer: Answer | None = None

    def steps(self) -> Steps:
        """Run the call. Returns the successful answer, or raises the error."""
        while True:
            permit = Permit(waits=self._call.wait_seconds > 0)
            try:
                send = yield from self._slot(permit)
                self._sent += 1
                self._first_sent = self._first_sent or (self._runtime.monotonic(), self._runtime.wall())
                outcome = yield send
                assert outcome is not None
                if isinstance(outcome, Answer):
                    self._answer = outcome
                failure = judge(self._call, outcome, self._runtime.wall())
                self._report_to_limiter(permit, outcome, failure)
            except BaseException:  # timeout, cancellation, KeyboardInterrupt, or a bug in judge()
                self._limiter.abandoned(permit, self._waiter, self._runtime.monotonic())
                raise
            if failure is None or self._found_removed(failure):
                assert isinstance(outcome, Answer)
                return outcome
            yield from self._pause(failure)

    def warn(self, stacklevel: int) -> None:
        """Warn when the last answer says that the operation will be removed."""
        if self._answer is not None:
            _warn_once(self._call.operation, self._answer, self._runtime, stacklevel + 1)

    def result(self, answer: Answer) -> _T:
        """The result of an answer of success; raises UnexpectedAnswer, or NotFound for an empty list."""
        try:
            return self._call.read(answer)
        except PetstoreError as error:
            self._unknown = self._call.changes
            raise self._ended(error) from None

    def _leave_to_others(self, follows_at: float) -> Generator[Step, Outcome, str]:
        """Wait while a follower's call is early, or would take what it leaves to others; returns why."""
        reason = ""
        while (opens_at := max(ample_at := self._limiter.ample_at(), follows_at)) > (
            now := self._runtime.monotonic()
        ):
            reason = reason or ("half of the limit is for others" if ample_at > now else "")
            yield Wait(min(opens_at - now, _WAIT_MAX_SECONDS))
        return reason

    def _slot(self, permit: Permit) -> Generator[Step, Outcome, Send]:
        """Wait until the call may be sent."""
        limiter, clock = self._limiter, self._runtime.monotonic
        reason = ""
        if self._call.follows_at is not None:
            reason = yield from self._leave_to_others(self._call.follows_at)
        limiter.enter(self._waiter)
        while (opens_at := limiter.opens_at(self._waiter, now := clock())) > now:
            held_until = limiter.held_until(now)
            if held_until > self._begins_by or now >= self._begins_by:
                raise self._ended(self._no_slot_error(held_until, now))
            seconds = min(opens_at - now, self._begins_by - now, _WAIT_MAX_SECONDS)
            reason = "the limit" if held_until > now else reason or "other calls of the key"
            yield Wait(seconds)
        if self._error is not None and self._forgotten(0):
            raise self._ended(self._error)
        limiter.take(permit, self._waiter, now)
        waited = now - self._idle_since
        if self._error is not None:
            reason = self._error.message
        elif waited < _LOGGED_SECONDS or not limiter.should_log_wait(now, _LOGGED_SECONDS):
            reason = ""
        return Send(self._ends_at, waited, reason)

    def _no_slot_error(self, held_until: float, now: float) -> PetstoreError:
        """The error of a call that gets no slot in time."""
        wait = max(0.0, held_until - now)
        reason = self._limiter.reason(now)
        if self._error is not None and (reason is None or not isinstance(self._error, ApiError)):
            return self._error
        if reason is not None:
            return type(reason)(reason.code, reason.message, reason.status, reason.request_id, wait)
        if not wait:
            message = f"Other calls with this key took all the time of this call. {_ADVICE}"
            return RateLimited("rate_limited", message, 429)
        cautious = self._limiter.is_cautious(now)
        why = "Too many calls were refused or got no answer" if cautious else "The limit is used up"
        left = max(0.0, self._begins_by - now)
        when = f"The next call is possible in {math.ceil(wait)} s, and this one may wait {math.floor(left)} s"
        message = f"{why}. {when}. {_ADVICE}"
        return RateLimited("rate_limited", message, 429, retry_after_seconds=wait)

    def _report_to_limiter(self, permit: Permit, outcome: Answer | Fault, failure: Failure | None) -> None:
        limiter, now = self._limiter, self._runtime.monotonic()
        if isinstance(outcome, Fault):
            if outcome.sent:
                limiter.lost(permit, now)
            else:
                limiter.withdrawn(permit)
            return
        error = failure.error if failure is not None else None
        refused = isinstance(error, ApiError) and error.status == 429
        banned = refused and isinstance(error, ApiError) and error.code == "key_banned"
        limits = read_limits(outcome.headers, self._runtime.wall())
        if limits is None or banned:
            limiter.answered_without_limits(permit, now)
        else:
            limiter.answered(permit, limits, now)
        if refused and self._call.has_own_limit and limits and all(each.remaining for each in limits.windows):
            return
        if refused and not banned:
            limiter.refused(now)
        elif 200 <= outcome.status < 300:
            limiter.passed(permit)
        if isinstance(error, ApiError) and error.status in {429, 503}:
            pause = error.retry_after_seconds
            if pause is None and refused:
                pause = self._backoff()
            if pause:
                limiter.hold(now + pause, error)

    def _pause(self, failure: Failure) -> Generator[Step, Outcome, None]:
        """Wait before the next try, or raise why there is none."""
        self._error = failure.error
        self._failed += not _is_refusal(failure)
        if self._call.changes:
            self._unknown = (self._unknown or failure.unknown) and not failure.conclusive
        now = self._idle_since = self._runtime.monotonic()
        pause = self._pause_seconds(failure)
        may_repeat = failure.transient and (self._call.repeatable or not failure.unknown)
        resumes_at = now + pause
        spent = self._failed >= self._options.tries or resumes_at > self._begins_by
        if not may_repeat or spent or self._forgotten(pause):
            raise self._ended(failure.error)
        while (now := self._runtime.monotonic()) < resumes_at:
            yield Wait(min(resumes_at - now, _WAIT_MAX_SECONDS))

    def _pause_seconds(self, failure: Failure) -> float:
        """`Retry-After`, else exponential back-off with full jitter. After a 429 the limiter waits."""
        asked = failure.retry_after_seconds or 0.0
        return asked if _is_refusal(failure) else max(asked, self._backoff())

    def _backoff(self) -> float:
        longest = min(_PAUSE_MAX_SECONDS, _FIRST_PAUSE_SECONDS * 2.0 ** min(self._sent - 1, _DOUBLINGS))
        return self._runtime.random() * longest

    def _forgotten(self, pause: float) -> bool:
        """Whether the service may have forgotten the Idempotency-Key of a creation that may have taken place.

        Both clocks count, because the monotonic one may stop while the machine sleeps.
        """
        if not self._unknown or self._first_sent is None:
            return False
        ages = self._runtime.monotonic() - self._first_sent[0], self._runtime.wall() - self._first_sent[1]
        return max(ages) + pause > _REPEATABLE_SECONDS

    def _found_removed(self, failure: Failure) -> bool:
        """Whether a repeated removal found nothing, so an earlier try removed it."""
        error = failure.error
        absent = isinstance(error, ApiError) and error.code == "not_found"
        return absent and self._unknown and self._call.absence_is_success

    def _ended(self, error: PetstoreError) -> PetstoreError:
        error.outcome_unknown = self._unknown
        error.idempotency_key = self._call.idempotency_key
        return error


def _is_refusal(failure: Failure) -> bool:
    return isinstance(failure.error, ApiError) and failure.error.status == 429


class OperationDeprecated(DeprecationWarning):
    """The operation will be removed at its sunset date (RFC 8594)."""


def _warn_once(operation: str, answer: Answer, runtime: Runtime, stacklevel: int) -> None:
    """Warn when the answer says so (RFC 9745), once in a process for each operation."""
    if "deprecation" not in answer.headers or operation in runtime.warned:
        return
    runtime.warned.add(operation)
    sunset = answer.headers.get("sunset")
    when = f"will be removed on {escaped(sunset)}" if sunset else "is deprecated"
    instead = " Use pets.get(id), which takes the same argument." if operation == "getPet" else ""
    warnings.warn(f"{operation} {when}.{instead}", OperationDeprecated, stacklevel=stacklevel + 1)
