"""What the HTTP server answers by itself: bytes that are not an HTTP/1.1 request, or too many of them."""

from __future__ import annotations

from email.utils import formatdate

from petstore.core.errors import HeadersTooLarge, InvalidRequest, UriTooLong
from petstore.http.exchange import STATUS_LINES

_ERRORS = {
    error.status: error
    for error in (
        InvalidRequest("This is not a request of HTTP/1.1; outside ASCII a target is percent-encoded."),
        UriTooLong(),
        HeadersTooLarge(),
    )
}
_HEAD = (
    b"%bdate: %b\r\ncontent-type: application/json\r\ncache-control: no-store\r\n"
    b"x-content-type-options: nosniff\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b"
)


def refusal(status: int) -> bytes:
    """The whole answer, after which the connection ends. It knows no key, so it says nothing about limits."""
    body = _ERRORS[status].body
    return _HEAD % (STATUS_LINES[status], formatdate(usegmt=True).encode("ascii"), len(body), body)
