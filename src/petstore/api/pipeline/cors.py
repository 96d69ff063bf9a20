"""Cross-origin requests of browsers: allowed for the configured origins, by default for none."""

from __future__ import annotations

from petstore.api.pipeline.request import Request
from petstore.api.pipeline.response import Header

_EXPOSED = (
    b"Accept-Patch, Allow, Date, Deprecation, ETag, Events-Behind, Idempotency-Replayed, Link, Location,"
    b" Petstore-Rehearsed, RateLimit, RateLimit-Policy, Retry-After, Sunset, WWW-Authenticate,"
    b" X-Environment, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id"
)
_ACCEPTED = (
    b"Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Petstore-Rehearse, X-Request-Id"
)
_PREFLIGHT_SECONDS = b"600"


class Cors:
    """The Fetch standard's headers for a set of origins."""

    def __init__(self, origins: tuple[str, ...] = ()) -> None:
        self._origins = frozenset(origin.encode("ascii") for origin in origins)
        self.is_configured = bool(origins)

    def headers(self, request: Request) -> list[Header]:
        """The headers of every response; none unless CORS is configured."""
        if not self.is_configured:
            return []
        vary: Header = (b"vary", b"Origin")
        origin = request.headers.get(b"origin")
        if origin not in self._origins:
            return [vary]
        return [vary, (b"access-control-allow-origin", origin), (b"access-control-expose-headers", _EXPOSED)]

    def preflight_headers(self, request: Request, allow: str) -> list[Header]:
        """The further headers of a preflight; empty for any other OPTIONS request."""
        if (
            request.headers.get(b"origin") not in self._origins
            or request.headers.get(b"access-control-request-method") is None
        ):
            return []
        return [
            (b"access-control-allow-methods", allow.encode("ascii")),
            (b"access-control-allow-headers", _ACCEPTED),
            (b"access-control-max-age", _PREFLIGHT_SECONDS),
        ]
