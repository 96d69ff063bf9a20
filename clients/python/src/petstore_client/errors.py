"""Every error that the client raises. `PetstoreError` is the base of all.

`ApiError` and its subclasses are answers of the service, one class for each code; docs/errors.md of the
service explains the codes. The others say why there was no usable answer.
"""

from __future__ import annotations

BY_CODE: dict[str, type[ApiError]] = {}
_TEXT_MAX_CHARACTERS = 1_000


def escaped(text: str) -> str:
    """A text from the network for logs and terminals: what is not printable escaped, the length bounded."""
    begin = text[: _TEXT_MAX_CHARACTERS + 1]
    text = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in begin)
    return text if len(text) <= _TEXT_MAX_CHARACTERS else text[: _TEXT_MAX_CHARACTERS - 1] + "…"


class PetstoreError(Exception):
    """An error of this client.

    `outcome_unknown` is True when a change may or may not have taken place: look before you repeat it.
    `idempotency_key` is a creation's: the same call with it is safe to repeat for 24 hours.
    """

    outcome_unknown: bool = False
    idempotency_key: str | None = None

    def __init__(self, message: str) -> None:
        self.message = escaped(message)
        super().__init__(self.message)


class ConfigurationError(PetstoreError, ValueError):
    """An address, a key or an option that the client does not take. Nothing was sent."""


class TransportError(PetstoreError):
    """There was no answer."""


class NotSent(TransportError):
    """The service could not be reached. Nothing was sent, so nothing was changed."""


class NoAnswer(TransportError):
    """The request was sent, at least in part, and no whole answer came."""


class RedirectRefused(PetstoreError):
    """The address answered with a redirect. It is not followed: the key goes to the given address only."""


class UnexpectedAnswer(PetstoreError):
    """An answer of success that is not the service's: another server, or a proxy, answered."""


class InvalidSignature(PetstoreError):
    """A request to a webhook is not the service's, or an old one. Answer it with 400, and do nothing else."""


class ApiError(PetstoreError):
    """The service, or a proxy before it, refused the request.

    `code` is the service's code, or `http_502` and the like when the answer is not the service's. The log of
    the service has the request under `request_id`. After `retry_after_seconds` the same call may succeed.
    """

    def __init__(
        self,
        code: str,
        message: str,
        status: int,
        request_id: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.code = escaped(code)
        self.status = status
        self.request_id = request_id and escaped(request_id)
        self.retry_after_seconds = retry_after_seconds

    def __init_subclass__(cls, *, code: str = "") -> None:
        if code:
            BY_CODE[code] = cls

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled whole, as process pools need."""
        state = (self.code, self.message, self.status, self.request_id, self.retry_after_seconds)
        return type(self), state, self.__dict__

    def __str__(self) -> str:
        request = f", request {self.request_id}" if self.request_id else ""
        return f"{self.message} ({self.status} {self.code}{request})"


class InvalidRequest(ApiError, code="invalid_request"):
    """What arrived is not an HTTP/1.1 request: something between the client and the service changed it."""


class InvalidJson(ApiError, code="invalid_json"):
    """The body is not one well-formed JSON document."""


class InvalidBody(ApiError, code="invalid_body"):
    """A value is missing or out of range; the message names every one."""


class InvalidParameter(ApiError, code="invalid_parameter"):
    """A parameter has a value that it does not take; the message names it."""


class InvalidHeader(ApiError, code="invalid_header"):
    """A header is missing or malformed, such as an `Idempotency-Key` with a space."""


class Unauthorized(ApiError, code="unauthorized"):
    """The key is unknown, expired or revoked."""


class AccountSuspended(ApiError, code="account_suspended"):
    """The operator has suspended the account of the key."""


class Forbidden(ApiError, code="forbidden"):
    """The operation takes a key of a higher level; the message names both."""


class NotFound(ApiError, code="not_found"):
    """There is no such animal, order, webhook or event."""


class MethodNotAllowed(ApiError, code="method_not_allowed"):
    """The path does not take this method."""


class RequestTimeout(ApiError, code="request_timeout"):
    """The service did not get the whole request in time; nothing was changed."""


class Conflict(ApiError, code="conflict"):
    """The current state does not allow the change; the message says what it allows."""


class IdempotencyKeyInUse(ApiError, code="idempotency_key_in_use"):
    """The first request with this `Idempotency-Key` is still running."""


class Gone(ApiError, code="gone"):
    """The operation was removed on its published date."""


class EventsGone(Gone, code="events_gone"):
    """The service can't continue from this bookmark: later events are not kept, or the store was restored.

    What you know of the animals may be out of date. Take the bookmark of `events.list(after="now")`, list
    the animals, then follow from that bookmark.
    """


class PreconditionFailed(ApiError, code="precondition_failed"):
    """It has changed since the tag in `If-Match` was read; nothing was changed."""


class PayloadTooLarge(ApiError, code="payload_too_large"):
    """The body is larger than 64 KiB."""


class UriTooLong(ApiError, code="uri_too_long"):
    """Path and query are longer than 8 KiB."""


class UnsupportedMediaType(ApiError, code="unsupported_media_type"):
    """The body is not of a type that the operation takes."""


class IdempotencyKeyReused(ApiError, code="idempotency_key_reused"):
    """The `Idempotency-Key` was used within 24 hours for something else; nothing was added."""


class RateLimited(ApiError, code="rate_limited"):
    """A limit is used up for longer than the call may wait; `retry_after_seconds` says for how long."""


class KeyBanned(ApiError, code="key_banned"):
    """The key is banned for longer than the call may wait; `retry_after_seconds` says for how long."""


class HeadersTooLarge(ApiError, code="headers_too_large"):
    """The headers are larger than 16 KiB."""


class InternalError(ApiError, code="internal_error"):
    """The service failed; its log has the reason under the request id."""


class Unavailable(ApiError, code="unavailable"):
    """The service can't carry out the request at the moment."""


class OutcomeUnknown(Unavailable, code="outcome_unknown"):
    """The service failed while it kept a change, which may have taken place."""


# For an unknown code, and for answers that are not the service's.
BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    408: RequestTimeout,
    409: Conflict,
    410: Gone,
    412: PreconditionFailed,
    413: PayloadTooLarge,
    414: UriTooLong,
    415: UnsupportedMediaType,
    429: RateLimited,
    431: HeadersTooLarge,
    500: InternalError,
    503: Unavailable,
}


def api_error(
    code: str, message: str, status: int, request_id: str | None = None, retry_after: float | None = None
) -> ApiError:
    """The error of a code, else of a status, else a plain ApiError."""
    kind = BY_CODE.get(code) or BY_STATUS.get(status, ApiError)
    return kind(code, message, status, request_id, retry_after)
