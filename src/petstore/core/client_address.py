"""Who a client is on the network, the peer or the hop that trusted proxies saw, and whom it means by Host."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Networks = tuple[IPv4Network | IPv6Network, ...]

UNKNOWN_CLIENT = "unknown"

# As proxies write it: an address, IPv6 perhaps in brackets; after IPv4 and brackets perhaps a port.
_HOP = re.compile(r"([0-9.]{7,15})(?::[0-9]{1,5})?|\[([^\]]{2,64})\](?::[0-9]{1,5})?|([^\[\]]{2,64})")

_PORT = re.compile(r":[0-9]*$")


@lru_cache(maxsize=4_096)
def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """An address, an IPv4-mapped IPv6 one as IPv4; None when the text is none."""
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed


def is_within(text: str, networks: Networks) -> bool:
    """Whether the text is an address in one of the networks."""
    address = parse_address(text)
    return address is not None and any(address in network for network in networks)


def client_address(peer: str, forwarded_for: str, trusted: Networks) -> str:
    """The peer unless it is trusted; then the right-most hop of X-Forwarded-For that is not.

    The left end of that header is whatever the client wrote, so it is never believed by itself. A hop
    that can't be read is somebody unknown: not the proxy, who may be allowed what others are not.
    """
    if not forwarded_for.strip() or not is_within(peer, trusted):
        return peer
    address = UNKNOWN_CLIENT
    for hop in reversed([hop.strip() for hop in forwarded_for.split(",") if hop.strip()]):
        address = _read_hop(hop)
        if not is_within(address, trusted):
            break
    return address


def is_host_of_ours(host: str, names: frozenset[str]) -> bool:
    """Whether a request's Host is one of the names, or one that no page on the web can have.

    A page that lets its own name resolve to this machine (DNS rebinding) sends that name. An address and a
    name without a dot, such as `localhost` or that of a container, are not names on the web.
    """
    if host.startswith("["):
        return True
    name = _PORT.sub("", host).lower()
    return "." not in name or name in names or parse_address(name) is not None


def _read_hop(text: str) -> str:
    match = _HOP.fullmatch(text)
    address = match[match.lastindex or 0] if match is not None else ""
    return address if parse_address(address) is not None else UNKNOWN_CLIENT
