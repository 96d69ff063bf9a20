"""Every error: its class, code and HTTP status (docs/errors.md); its headers: api/pipeline/response.py."""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar

import msgspec

# The class that defines each code; a subclass without a code of its own has its parent's.
BY_CODE: dict[str, type[PetstoreError]] = {}


class PetstoreError(Exception):
    """An error with a documented HTTP answer. `message` is a sentence for a person."""

    code: ClassVar[str]
    status: ClassVar[int]
    retry_after_seconds: int | None = None

    def __init_subclass__(cls, *, code: str = "", status: int = 0) -> None:
        if code:
            cls.code, cls.status = code, status
            BY_CODE[code] = cls

    def __init__(self, message: str, *, retry_after_seconds: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        if retry_after_seconds is not None:
            self.retry_after_seconds = retry_after_seconds

    @property
    def public_message(self) -> str:
        """The message that an HTTP client gets."""
        return self.message

    @property
    def body(self) -> bytes:
        """The specification's Error as JSON: exactly these three members."""
        return _body(self.code, self.public_message, self.status)


@lru_cache(maxsize=256)
def _body(code: str, message: str, status: int) -> bytes:
    """Cached, because clients repeat their errors."""
    return msgspec.json.encode({"code": code, "message": message, "status": status})


class InvalidRequest(PetstoreError, code="invalid_request", status=400):
    """What was sent is not an HTTP/1.1 request."""


class InvalidJson(PetstoreError, code="invalid_json", status=400):
    """The body is not one well-formed JSON document in UTF-8."""


class InvalidBody(PetstoreError, code="invalid_body", status=400):
    """The body is JSON but not the documented shape; the message names every member at fault."""


class Invalid(InvalidBody):
    """A value that a rule of the core refuses. `field` is the core's name of it, such as `per_minute`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class InvalidParameter(PetstoreError, code="invalid_parameter", status=400):
    """A query parameter is unknown or has a value that it does not take; the message names it."""


class InvalidHeader(PetstoreError, code="invalid_header", status=400):
    """A request header that the service reads is missing, doubled or malformed."""


class Unauthorized(PetstoreError, code="unauthorized", status=401):
    """The API key is missing or invalid."""


class AccountSuspended(PetstoreError, code="account_suspended", status=403):
    """The operator has suspended the account of the key."""


class Forbidden(PetstoreError, code="forbidden", status=403):
    """The operation takes a key of a higher level; the message names it."""


class NotFound(PetstoreError, code="not_found", status=404):
    """Nothing has this path, identifier or name."""


class EntityNotFound(NotFound):
    """Nothing has this reference, of which `template` makes the message."""

    template: ClassVar[str]

    def __init_subclass__(cls, *, template: str) -> None:
        super().__init_subclass__()
        cls.template = template

    def __init__(self, reference: object) -> None:
        super().__init__(self.template.format(reference))


class PetNotFound(EntityNotFound, template="There is no animal {}."):
    """No animal has this id."""


class CategoryNotFound(EntityNotFound, template="Category {} has no name."):
    """The category has no name."""


class AccountNotFound(EntityNotFound, template="There is no account {!r}."):
    """No account has this name or, in digits, this id."""


class KeyNotFound(EntityNotFound, template="There is no key {}."):
    """No key has this id."""


class UploadNotFound(EntityNotFound, template="There is no stock list {}. Lists are kept for 24 hours."):
    """No stock list has this id; it may have been there for longer than a day."""


class OrderNotFound(EntityNotFound, template="There is no order {}."):
    """No order has this id, or it is another account's."""


class WebhookNotFound(EntityNotFound, template="There is no webhook {}."):
    """No webhook has this id, or it is another account's."""


class EventNotFound(EntityNotFound, template="There is no event {!r:.60}, or it is kept no longer."):
    """No event has this id, or the account does not see it."""


class ContactNotFound(EntityNotFound, template="There is no such contact: {}."):
    """Nobody's, or of another account or person; a link of a contact that was removed."""


class PersonNotFound(EntityNotFound, template="There is no person {!r}."):
    """Nobody has this name."""


class MethodNotAllowed(PetstoreError, code="method_not_allowed", status=405):
    """The path exists, the method is not one of its `allow`."""

    def __init__(self, message: str, allow: str) -> None:
        super().__init__(message)
        self.allow = allow


class RequestTimeout(PetstoreError, code="request_timeout", status=408):
    """The request body did not arrive within its deadline."""


class Conflict(PetstoreError, code="conflict", status=409):
    """The change does not fit the current state; with another state the same request may succeed."""


class AccountExists(Conflict):
    """Another account has this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is an account {name!r} already; choose another name.")


class IdempotencyKeyInUse(PetstoreError, code="idempotency_key_in_use", status=409):
    """The first request with this Idempotency-Key has not been answered yet."""

    retry_after_seconds = 1

    def __init__(
        self, message: str = "A request with this Idempotency-Key is still being carried out."
    ) -> None:
        super().__init__(message)


class Gone(PetstoreError, code="gone", status=410):
    """The operation was removed on its published date."""


class EventsGone(PetstoreError, code="events_gone", status=410):
    """The store can't continue a bookmark: what follows it was removed, or it is of another data set."""


class LinkGone(Gone):
    """A one-time link was used, replaced or is too old."""

    def __init__(self) -> None:
        super().__init__("This link was used already, or is too old. Ask an operator for a new one.")


class PreconditionFailed(PetstoreError, code="precondition_failed", status=412):
    """What the change is for is not as the client's If-Match says. Nothing was changed."""


class PayloadTooLarge(PetstoreError, code="payload_too_large", status=413):
    """The body is larger than the service reads."""


class UriTooLong(PetstoreError, code="uri_too_long", status=414):
    """The request target is longer than the service reads, under /v1 and of any page."""

    MAX_BYTES = 8 * 1024

    def __init__(self, message: str = f"The request target is longer than {MAX_BYTES} bytes.") -> None:
        super().__init__(message)


class UnsupportedMediaType(PetstoreError, code="unsupported_media_type", status=415):
    """The body is not of a media type that the operation takes. `accept_patch` has a PATCH's types."""

    def __init__(self, message: str, accept_patch: str = "") -> None:
        super().__init__(message)
        self.accept_patch = accept_patch


class IdempotencyKeyReused(PetstoreError, code="idempotency_key_reused", status=422):
    """This Idempotency-Key belongs to another creation of the last 24 hours."""


class RateLimited(PetstoreError, code="rate_limited", status=429):
    """A window of the account, or of the client's address, is used up."""


class TooManyTries(RateLimited):
    """A budget of wrong passwords is used up; the same for names that do not exist."""

    def __init__(self, retry_after_ms: int) -> None:
        seconds = max(1, -(-retry_after_ms // 1_000))
        wait = f"{-(-seconds // 60)} minutes" if seconds > 60 else f"{seconds} s"
        super().__init__(f"Too many wrong tries. Try again in {wait}.", retry_after_seconds=seconds)


class KeyBanned(PetstoreError, code="key_banned", status=429):
    """The key is banned until a time, because it ignored many 429 answers."""


class HeadersTooLarge(PetstoreError, code="headers_too_large", status=431):
    """The request head is larger than the service reads."""

    MAX_BYTES = 16 * 1024

    def __init__(self, message: str = f"The request head is larger than {MAX_BYTES} bytes.") -> None:
        super().__init__(message)


class InternalError(PetstoreError, code="internal_error", status=500):
    """An unexpected error. The log has its details under the request id; the answer has none."""


class Unavailable(PetstoreError, code="unavailable", status=503):
    """The service can't carry out the request at the moment. Nothing was changed."""

    retry_after_seconds = 1


class StoreUnavailable(Unavailable):
    """The database refused, is locked, full or away. `message` is for operators, `public` for clients."""

    def __init__(self, message: str, *, public: str | None = None) -> None:
        super().__init__(message)
        self._public = public

    @property
    def public_message(self) -> str:
        return self._public or self.message


class OutcomeUnknown(StoreUnavailable, code="outcome_unknown", status=503):
    """The store failed while it committed: the change may have been kept. Look before repeating it."""


class StoreFull(StoreUnavailable):
    """The disk is full. Nothing of the transaction was written."""


class StoreReadOnly(StoreUnavailable):
    """This user may not write the file or its directory, or nobody may. Trying again does not help."""


class StoreDamaged(StoreUnavailable):
    """The file is damaged or not a database. Trying again does not help."""


class LimiterUnavailable(Unavailable):
    """Valkey can't be reached, and PETSTORE_LIMITER_OUTAGE is `refuse`."""


class OperatorError(Exception):
    """Why a command or a start failed, for the operator; never an HTTP answer, no use to repeat (exit 1)."""


class ConfigurationError(OperatorError):
    """A setting is unknown, malformed, contradictory or unsafe: the process must not start (exit 78)."""
