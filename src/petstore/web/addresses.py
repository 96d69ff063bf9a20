"""The address by which a reader reached the service; pages show it if no base address is configured."""

from __future__ import annotations

import re

from starlette.requests import Request

from petstore.core.client_address import Networks, is_within

# In documents and samples; the reader's own address replaces it.
EXAMPLE = "http://127.0.0.1:8080"

_HOST = re.compile(r"[a-z0-9.-]{1,253}(:[0-9]{1,5})?|\[[0-9a-f:.]{2,45}\](:[0-9]{1,5})?")
_SCHEMES = ("http", "https")


def address_of(request: Request, trusted: Networks) -> str:
    """Scheme and Host, without a final slash. EXAMPLE if Host is missing, doubled or not a host's name.

    A trusted proxy's X-Forwarded-Proto names the scheme.
    """
    hosts = [host.lower() for host in request.headers.getlist("host")]
    if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
        return EXAMPLE
    return f"{scheme_of(request, trusted)}://{hosts[0]}"


def scheme_of(request: Request, trusted: Networks) -> str:
    """`http` or `https`: of the connection, or from a trusted proxy's X-Forwarded-Proto."""
    scheme = str(request.scope["scheme"])
    if request.client is not None and is_within(request.client.host, trusted):
        forwarded = request.headers.get("x-forwarded-proto", "").strip().lower()
        scheme = forwarded if forwarded in _SCHEMES else scheme
    return scheme
