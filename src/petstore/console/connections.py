"""What a request's connection says: where it is from, whether TLS protects it, whose page sent it."""

from __future__ import annotations

import re

from starlette.requests import Request

from petstore.core.client_address import (
    UNKNOWN_CLIENT,
    Networks,
    client_address,
    is_host_of_ours,
    parse_address,
)
from petstore.core.errors import Forbidden
from petstore.web.addresses import scheme_of

_PORT = re.compile(r":[0-9]*$")


class Connections:
    """`trusted`: the proxies whose X-Forwarded-For and -Proto are believed; `hosts`: the service's names."""

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
        """Whether a password may be sent: by TLS, or without leaving the browser's machine."""
        if self.is_secure(request):
            return True
        name = _PORT.sub("", request.headers.get("host", "")).strip("[]")
        address = parse_address(name)
        return name == "localhost" or (address is not None and address.is_loopback)

    def check_host(self, request: Request) -> None:
        """Against DNS rebinding. Raises Forbidden."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not is_host_of_ours(hosts[0], self._hosts):
            raise Forbidden(
                "The console is not shown under this name. An operator sets PETSTORE_BASE_URL to the address"
                " of the service, or adds the name to PETSTORE_OPS_HOSTS."
            )

    def check_origin(self, request: Request) -> None:
        """That no other site's page has sent this form (Fetch Metadata, RFC 6454). Raises Forbidden."""
        site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
        if site is not None:
            ours = site in ("same-origin", "none")
        else:  # `null` has no host; a proxy may give another Host than the browser sent
            host = (origin or "").partition("://")[2]
            ours = origin is None or (
                host != "" and (host == request.headers.get("host") or _PORT.sub("", host) in self._hosts)
            )
        if not ours:
            raise Forbidden(
                "Another site has sent this form, so nothing was changed. Open the console itself."
            )
