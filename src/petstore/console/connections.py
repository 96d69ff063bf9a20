"""The client's address, TLS, and the origin of a form, from a request's connection and headers."""

from __future__ import annotations

import re

from starlette.requests import Request

from petstore.core.client_address import (
    UNKNOWN_CLIENT,
    Networks,
    client_address,
    is_host_of_ours,
    is_within,
    parse_address,
)
from petstore.core.errors import Forbidden
from petstore.web.addresses import scheme_of

_PORT = re.compile(r":[0-9]*$")
# Headers that proxies add.
_PROXY_HEADERS = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
_OTHER_NAME = (
    "The console is not shown under this name. An operator sets PETSTORE_BASE_URL to the address"
    " of the service, or adds the name to PETSTORE_OPS_HOSTS."
)


class Connections:
    """`trusted`: proxies whose X-Forwarded-For and -Proto count. `hosts`: the service's names."""

    def __init__(self, trusted: Networks, hosts: frozenset[str]) -> None:
        self._trusted = trusted
        self._hosts = hosts

    def address(self, request: Request) -> str:
        """The client's address, behind trusted proxies too."""
        peer = request.client.host if request.client else UNKNOWN_CLIENT
        return client_address(peer, ",".join(request.headers.getlist("x-forwarded-for")), self._trusted)

    def is_secure(self, request: Request) -> bool:
        """Whether the reader's browser uses TLS."""
        return scheme_of(request, self._trusted) == "https"

    def takes_secrets(self, request: Request) -> bool:
        """Whether a password may be sent: over TLS, or from a browser on this machine.

        An unconfigured proxy may send `Host: 127.0.0.1` for any request. Its forwarding headers or the form's
        Origin reveal it.
        """
        if self.is_secure(request):
            return True
        asked_for = [request.headers.get("host", ""), *map(_host_of, request.headers.getlist("origin"))]
        return all(map(_is_loopback, asked_for)) and not self._has_unknown_proxy(request)

    def _has_unknown_proxy(self, request: Request) -> bool:
        is_known = request.client is not None and is_within(request.client.host, self._trusted)
        return not is_known and any(name in request.headers for name in _PROXY_HEADERS)

    def check_host(self, request: Request) -> None:
        """Prevent DNS rebinding. Raises Forbidden."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not is_host_of_ours(hosts[0], self._hosts):
            raise Forbidden(_OTHER_NAME)

    def check_origin(self, request: Request) -> None:
        """Refuse the form of another site's page (Fetch Metadata, RFC 6454). Raises Forbidden."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        # `null` has no host; a proxy may give another Host than the browser sent.
        host, here = _host_of(origin or ""), request.headers.get("host", "")
        name = _PORT.sub("", host)
        is_ours = host != "" and (host == here or name in self._hosts)
        if site not in (None, "same-origin", "none") or (site is None and origin is not None and not is_ours):
            raise Forbidden(
                "Another site has sent this form, so nothing was changed. Open the console itself."
            )
        if host and not is_ours and name != _PORT.sub("", here):
            raise Forbidden(_OTHER_NAME)


def _host_of(origin: str) -> str:
    """The host of an origin, with its port; empty for `null`."""
    return origin.partition("://")[2]


def _is_loopback(host: str) -> bool:
    """Whether this host, with or without a port, is the browser's own machine."""
    name = _PORT.sub("", host).strip("[]")
    address = parse_address(name)
    return name == "localhost" or (address is not None and address.is_loopback)
