"""The bound of a request's target, the same under /v1, for pages and in the console."""

from __future__ import annotations

from petstore.core.errors import UriTooLong

MAX_BYTES = 8 * 1024


def too_long() -> UriTooLong:
    """The refusal of one above the bound."""
    return UriTooLong(f"The request target is longer than {MAX_BYTES} bytes.")
