"""Judges an outcome: success or error, whether to try again, whether anything may have changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from petstore_client.answers import Answer, Fault, error_of
from petstore_client.calls import Call
from petstore_client.errors import (
    ApiError,
    NoAnswer,
    NotSent,
    PetstoreError,
    RedirectRefused,
    UnexpectedAnswer,
)

_CHANGED_NOTHING = {"request_timeout", "internal_error", "unavailable"}
# 1.1.0 and its nginx know no code `outcome_unknown`: there `unavailable` says so, in one of these sentences.
_UNKNOWN_TO_1_1_0 = re.compile(
    r"whether (this write was kept|a write was carried out) is unknown", re.IGNORECASE
)
_TRANSIENT = {408, 429, 500, 502, 503, 504}
# These do not tell the outcome of an earlier try: they come before the operation, or (412) our own first
# try may have changed the tag.
_INCONCLUSIVE = {401, 403, 412, 429}


@dataclass(frozen=True)
class Failure:
    """Why a try did not succeed."""

    error: PetstoreError
    transient: bool = False  # another try may succeed
    unknown: bool = False  # the change may have been made
    conclusive: bool = False  # no try so far changed anything

    @property
    def retry_after_seconds(self) -> float | None:
        return self.error.retry_after_seconds if isinstance(self.error, ApiError) else None


def judge(call: Call[Any], outcome: Answer | Fault, wall: float) -> Failure | None:
    """The failure of a try, None for an answer of success. `wall` is the Unix time in seconds."""
    if isinstance(outcome, Fault):
        if outcome.sent:
            return Failure(NoAnswer(outcome.message), transient=True, unknown=True)
        return Failure(NotSent(outcome.message), transient=True)
    if 200 <= outcome.status < 300:
        return None
    if 300 <= outcome.status < 400:
        return Failure(_redirect(outcome))
    if outcome.status < 200:
        return Failure(UnexpectedAnswer(f"An answer of status {outcome.status}."), unknown=True)
    return _judge_error(call, outcome, error_of(outcome, wall))


def _judge_error(call: Call[Any], answer: Answer, error: ApiError) -> Failure:
    status = answer.status
    if status == 429:
        return Failure(error, transient=True)
    if error.code == "idempotency_key_in_use":
        return Failure(error, transient=True, unknown=True)
    if error.code in _CHANGED_NOTHING and not _UNKNOWN_TO_1_1_0.search(error.message):
        return Failure(error, transient=True)
    if status >= 500 or status == 408:
        return Failure(error, transient=status in _TRANSIENT, unknown=True)
    removed_since = status == 404 and call.method == "PATCH"
    return Failure(error, conclusive=status not in _INCONCLUSIVE and not removed_since)


def _redirect(answer: Answer) -> RedirectRefused:
    try:
        target = urlsplit(answer.headers.get("location", ""))
        where = f"{target.scheme}://{target.hostname}" if target.hostname else "another path"
    except ValueError:
        where = "an invalid address"
    return RedirectRefused(
        f"The address redirects ({answer.status}) to {where}. Redirects are not followed, so that the key"
        " goes nowhere else; give the service's own address."
    )
