"""The client's network address, behind trusted proxies too, and which names in Host are accepted."""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Networks = tuple[IPv4Network | IPv6Network, ...]

UNKNOWN_CLIENT = "unknown"
_IPV6_HOST_BITS = 64

# An address as proxies write it: IPv6 may stand in brackets, a port may follow IPv4 and brackets.
_HOP = re.compile(r"([0-9.]{7,15})(?::[0-9]{1,5})?|\[([^\]]{2,64})\](?::[0-9]{1,5})?|([^\[\]]{2,64})")

_PORT = re.compile(r":[0-9]*$")


@lru_cache(maxsize=4_096)
def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address, or None for another text. IPv4-mapped IPv6 becomes IPv4."""
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped
    return parsed


def network_of(text: str) -> str:
    """What failed authentications and sign-ins are counted by: the address; for IPv6 its /64.

    A subscriber has all of a /64. UNKNOWN_CLIENT for a text that is not an address.
    """
    parsed = parse_address(text)
    if isinstance(parsed, IPv6Address):
        return f"{int(parsed) >> _IPV6_HOST_BITS:x}/64"
    return str(parsed) if parsed is not None else UNKNOWN_CLIENT


def is_within(text: str, networks: Networks) -> bool:
    """True when the text is an address in one of the networks."""
    address = parse_address(text)
    return address is not None and any(address in network for network in networks)


def client_address(peer: str, forwarded_for: str, trusted: Networks) -> str:
    """The peer, or behind a trusted peer the right-most untrusted hop of X-Forwarded-For.

    The client itself may have written the left end of that header. An unreadable hop is UNKNOWN_CLIENT, not
    the proxy, because a proxy's address may have more rights.
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
    """True when a request's Host is one of the names, an address, or a name without a dot.

    This stops DNS rebinding: a web page that makes its own name resolve to this machine sends that name.
    Such a name is public and has a dot, so an address, `localhost` and a container's name are safe.
    """
    if host.startswith("["):
        return True
    name = _PORT.sub("", host).lower()
    return "." not in name or name in names or parse_address(name) is not None


def _read_hop(text: str) -> str:
    match = _HOP.fullmatch(text)
    address = match[match.lastindex or 0] if match is not None else ""
    return address if parse_address(address) is not None else UNKNOWN_CLIENT
