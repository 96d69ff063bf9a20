"""The catalogue of errors; tests/docs/test_errors.py has its codes and statuses, which are contract."""

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


def test_every_error_class_has_a_code_of_the_catalogue() -> None:
    """A class may share the code of its parent, as StoreUnavailable does, and nothing else."""
    classes = [
        cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, PetstoreError)
    ]
    for cls in classes:
        if cls is not PetstoreError:
            assert issubclass(cls, BY_CODE[cls.code])
    assert StoreUnavailable.code == "unavailable"


@every_case("code", BY_CODE)
def test_the_body_has_exactly_three_members(code: str) -> None:
    """`status` equals the HTTP status; the message is what was given, whatever it is."""
    message = 'a "quoted" message, with\nall'
    cls = BY_CODE[code]
    error = cls(message, "GET") if cls is MethodNotAllowed else cls(message)
    assert json.loads(error.body) == {"code": code, "message": message, "status": cls.status}
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
    """The wait is rounded up: a person who tries again then is not refused for the same tries."""
    error = TooManyTries(milliseconds)
    assert (error.retry_after_seconds, error.message) == (
        seconds,
        f"Too many wrong tries. Try again in {wait}.",
    )
