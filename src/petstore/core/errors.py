"""Every error: its class, and for an answer of the service its code and HTTP status.

docs/errors.md has an entry for each code. The headers of an error: api/pipeline/response.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import msgspec


class PetstoreError(Exception):
    """An error with a documented HTTP answer. `message` is a sentence for a person."""

    code: ClassVar[str]
    status: ClassVar[int]
    retry_after_seconds: int | None = None

    def __init__(self, message: str, *, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        if retry_after_seconds is not None:
            self.retry_after_seconds = retry_after_seconds

    @property
    def public_message(self) -> str:
        """The message that an HTTP client gets."""
        return self.message


class InvalidJson(PetstoreError):
    """The body is not one well-formed JSON document in UTF-8."""

    code, status = "invalid_json", 400


class InvalidBody(PetstoreError):
    """The body is JSON but not the documented shape; the message names every member at fault."""

    code, status = "invalid_body", 400


class Invalid(InvalidBody):
    """A value that a rule of the core refuses. `field` is the core's name of it, such as `per_minute`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidParameter(PetstoreError):
    """A query parameter has a value that it does not take; the message names the parameter."""

    code, status = "invalid_parameter", 400


class InvalidHeader(PetstoreError):
    """A request header that the service reads is missing, doubled or malformed."""

    code, status = "invalid_header", 400


class Unauthorized(PetstoreError):
    """The API key is missing or invalid."""

    code, status = "unauthorized", 401


class NotFound(PetstoreError):
    """There is no such path, animal, account or key."""

    code, status = "not_found", 404


class PetNotFound(NotFound):
    """No animal has this id."""

    def __init__(self, pet_id: int) -> None:
        super().__init__(f"There is no animal {pet_id}.")


class AccountNotFound(NotFound):
    """No account has this name or, in digits, this id."""

    def __init__(self, reference: str) -> None:
        super().__init__(f"There is no account {reference!r}.")


class KeyNotFound(NotFound):
    """No key has this id."""

    def __init__(self, key_id: int) -> None:
        super().__init__(f"There is no key {key_id}.")


class MethodNotAllowed(PetstoreError):
    """The path exists, the method is not one of its `allow`."""

    code, status = "method_not_allowed", 405

    def __init__(self, message: str, allow: str) -> None:
        super().__init__(message)
        self.allow = allow


class RequestTimeout(PetstoreError):
    """The request body did not arrive within its deadline."""

    code, status = "request_timeout", 408


class Conflict(PetstoreError):
    """The change does not fit the present state; with another state the same request may succeed."""

    code, status = "conflict", 409


class AccountExists(Conflict):
    """Another account has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is an account {name!r} already; choose another name.")


class IdempotencyKeyInUse(PetstoreError):
    """The first request with this Idempotency-Key has not been answered yet."""

    code, status = "idempotency_key_in_use", 409
    retry_after_seconds = 1

    def __init__(
        self, message: str = "A request with this Idempotency-Key is still being carried out."
    ) -> None:
        super().__init__(message)


class Gone(PetstoreError):
    """The operation was removed on its published date."""

    code, status = "gone", 410


class PayloadTooLarge(PetstoreError):
    """The body is larger than the service reads."""

    code, status = "payload_too_large", 413


class UriTooLong(PetstoreError):
    """The request target is longer than the service reads."""

    code, status = "uri_too_long", 414


class UnsupportedMediaType(PetstoreError):
    """The body is not plain `application/json`."""

    code, status = "unsupported_media_type", 415


class IdempotencyKeyReused(PetstoreError):
    """This Idempotency-Key belongs to another creation of the last 24 hours."""

    code, status = "idempotency_key_reused", 422


class RateLimited(PetstoreError):
    """A window of the account, or of the client's address, is used up."""

    code, status = "rate_limited", 429


class KeyBanned(PetstoreError):
    """The key is banned until a time, because it ignored many 429 answers."""

    code, status = "key_banned", 429


class HeadersTooLarge(PetstoreError):
    """The request head is larger than the service reads."""

    code, status = "headers_too_large", 431


class InternalError(PetstoreError):
    """An unexpected error. The log has its details under the request id; the answer never has."""

    code, status = "internal_error", 500


class Unavailable(PetstoreError):
    """The service can't carry out the request at the moment."""

    code, status = "unavailable", 503
    retry_after_seconds = 1


class StoreUnavailable(Unavailable):
    """The database refused, is locked, is full or can't be reached.

    `message` is for operators: in the log and on the command line. `public`, if given, is for HTTP clients.
    """

    def __init__(self, message: str, *, public: str | None = None) -> None:
        super().__init__(message)
        self._public = public

    @property
    def public_message(self) -> str:
        return self._public or self.message


class StoreFull(StoreUnavailable):
    """The disk is full. Nothing of the transaction was written."""


class StoreDamaged(StoreUnavailable):
    """The file is damaged or is no database. Trying again does not help."""


class LimiterUnavailable(Unavailable):
    """Valkey can't be reached, and PETSTORE_LIMITER_OUTAGE is `refuse`."""


class OperatorError(Exception):
    """Why a command or a start failed, for the operator; never an HTTP answer (exit 1).

    A port in use, a damaged file, a database that another service holds: trying again does not help.
    """


class ConfigurationError(OperatorError):
    """A setting is unknown, malformed, contradictory or unsafe: the process must not start (exit 78)."""


class ErrorBody(msgspec.Struct, frozen=True):
    """The specification's Error: exactly these three members."""

    code: str
    message: str
    status: int


def error_body(error: PetstoreError) -> bytes:
    """The JSON body of an error's answer."""
    return msgspec.json.encode(ErrorBody(error.code, error.public_message, error.status))


def _subclasses(base: type[PetstoreError]) -> Iterator[type[PetstoreError]]:
    for cls in base.__subclasses__():
        yield cls
        yield from _subclasses(cls)


# Code -> the class that defines it (StoreUnavailable inherits the code of Unavailable).
CATALOGUE: dict[str, type[PetstoreError]] = {
    cls.code: cls for cls in _subclasses(PetstoreError) if "code" in cls.__dict__
}
