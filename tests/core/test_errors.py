"""The catalogue of errors: codes and statuses are contract."""

from __future__ import annotations

import json

from petstore.core import errors
from petstore.core.errors import (
    BY_CODE,
    MethodNotAllowed,
    PetstoreError,
    StoreUnavailable,
    TooManyTries,
)
from tests.support.cases import every_case

CODES = {
    "invalid_request": 400,
    "invalid_json": 400,
    "invalid_body": 400,
    "invalid_parameter": 400,
    "invalid_header": 400,
    "unauthorized": 401,
    "account_suspended": 403,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "request_timeout": 408,
    "conflict": 409,
    "idempotency_key_in_use": 409,
    "gone": 410,
    "events_gone": 410,
    "precondition_failed": 412,
    "payload_too_large": 413,
    "uri_too_long": 414,
    "unsupported_media_type": 415,
    "idempotency_key_reused": 422,
    "rate_limited": 429,
    "key_banned": 429,
    "headers_too_large": 431,
    "internal_error": 500,
    "unavailable": 503,
    "outcome_unknown": 503,
}


def test_the_codes_are_those_of_the_interface() -> None:
    """None is missing, none has another status, none is new without this table knowing."""
    assert {code: cls.status for code, cls in BY_CODE.items()} == CODES


def test_every_error_class_has_a_code_of_the_catalogue() -> None:
    """A class may share the code of its parent, as StoreUnavailable does, and nothing else."""
    classes = [
        cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, PetstoreError)
    ]
    for cls in classes:
        if cls is not PetstoreError:
            assert issubclass(cls, BY_CODE[cls.code])
    assert StoreUnavailable.code == "unavailable"


@every_case("code", CODES)
def test_the_body_has_exactly_three_members(code: str) -> None:
    """`status` equals the HTTP status; the message is what was given, whatever it is."""
    message = 'a "quoted" message, with\nall'
    cls = BY_CODE[code]
    error = cls(message, "GET") if cls is MethodNotAllowed else cls(message)
    assert json.loads(error.body) == {"code": code, "message": message, "status": CODES[code]}
    assert str(error) == message


def test_when_to_come_back_is_a_default_of_the_class_or_given() -> None:
    """A second for what passes soon, the window's or the ban's end else."""
    assert errors.Unavailable("x").retry_after_seconds == 1
    assert errors.IdempotencyKeyInUse("x").retry_after_seconds == 1
    assert errors.NotFound("x").retry_after_seconds is None
    assert errors.RateLimited("x", retry_after_seconds=17).retry_after_seconds == 17


@every_case(
    ("milliseconds", "seconds", "wait"),
    [
        (0, 1, "1 s"),
        (1_000, 1, "1 s"),
        (1_001, 2, "2 s"),
        (60_000, 60, "60 s"),
        (60_001, 61, "2 minutes"),
        (120_000, 120, "2 minutes"),
        (120_001, 121, "3 minutes"),
    ],
)
def test_how_long_to_wait_is_never_too_short(milliseconds: int, seconds: int, wait: str) -> None:
    """Rounded up: a person who tries again then is not refused for the same tries."""
    error = TooManyTries(milliseconds)
    assert (error.retry_after_seconds, error.message) == (
        seconds,
        f"Too many wrong tries. Try again in {wait}.",
    )
