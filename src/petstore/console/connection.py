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


class Connection:
    """`trusted`: proxies whose X-Forwarded-For and -Proto count. `hosts`: the service's names."""

    def __init__(self, request: Request, trusted: Networks, hosts: frozenset[str]) -> None:
        self._headers = request.headers
        self._peer = request.client.host if request.client else UNKNOWN_CLIENT
        self._trusted = trusted
        self._hosts = hosts
        # Whether the reader's browser uses TLS.
        self.is_secure = scheme_of(request, trusted) == "https"

    @property
    def address(self) -> str:
        """The client's address, behind trusted proxies too."""
        return client_address(self._peer, ",".join(self._headers.getlist("x-forwarded-for")), self._trusted)

    def takes_secrets(self) -> bool:
        """Whether a password may be sent: over TLS, or from a browser on this machine.

        An unconfigured proxy may send `Host: 127.0.0.1` for any request. Its forwarding headers or the form's
        Origin reveal it.
        """
        if self.is_secure:
            return True
        asked_for = [self._headers.get("host", ""), *map(_host_of, self._headers.getlist("origin"))]
        return all(map(_is_loopback, asked_for)) and not self._has_unknown_proxy()

    def _has_unknown_proxy(self) -> bool:
        is_known = is_within(self._peer, self._trusted)
        return not is_known and any(name in self._headers for name in _PROXY_HEADERS)

    def check_host(self) -> None:
        """Prevent DNS rebinding. Raises Forbidden."""
        hosts = self._headers.getlist("host")
        if len(hosts) != 1 or not is_host_of_ours(hosts[0], self._hosts):
            raise Forbidden(_OTHER_NAME)

    def check_origin(self) -> None:
        """Refuse the form of another site's page (Fetch Metadata, RFC 6454). Raises Forbidden."""
        site, origin = self._headers.get("sec-fetch-site"), self._headers.get("origin")
        # `null` has no host; a proxy may give another Host than the browser sent.
        host, here = _host_of(origin or ""), self._headers.get("host", "")
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
