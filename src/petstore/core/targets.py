"""The URLs and addresses that webhooks may call: public ones, and the networks that a setting allows.

A URL comes from a stranger, and this service reaches what the stranger can't: itself, its store, its
neighbours. `UrlGuard` judges a URL, and each address that the name in it has at the moment of a call.
"""

from __future__ import annotations

import re
import unicodedata
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import unquote

import msgspec

from petstore.core.client_address import Networks

_Address = IPv4Address | IPv6Address

URL_MAX = 2_000  # characters
_SETTING = "PETSTORE_WEBHOOK_NETWORKS allows networks"

# The special-purpose registries of IANA; the first row that has an address names it. `ipaddress` has them
# too, but what its properties mean changed between Python 3.11 and 3.14.
_KINDS = {
    "an unspecified address": "0.0.0.0/8 ::/128",
    "a loopback address": "127.0.0.0/8 ::1/128",
    # AWS and most others, Amazon's containers, Azure, Alibaba, Oracle, AWS and Google by IPv6
    "an address of cloud metadata": "169.254.169.254 169.254.170.2 168.63.129.16 100.100.100.200"
    " 192.0.0.192 fd00:ec2::254 fd20:ce::254",
    "a link-local address": "169.254.0.0/16 fe80::/10",
    "a private address": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10",
    "a shared address": "100.64.0.0/10",
    "a documentation address": "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",
    "a benchmark address": "198.18.0.0/15 2001:2::/48",
    "a multicast address": "224.0.0.0/4 ff00::/8",
    "a broadcast address": "255.255.255.255",
    # Only 2000::/3 is given out to the public. Of it protocols have 2001::/23, Teredo too; 6to4 is over.
    "a reserved address": "192.0.0.0/24 192.88.99.0/24 240.0.0.0/4 2001::/23 2002::/16"
    " ::/3 4000::/2 8000::/1",
}
_NETWORKS = [(kind, ip_network(text)) for kind, texts in _KINDS.items() for text in texts.split()]
_LOOPBACK: Networks = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

# IPv4 in the last 32 bits: IPv4-mapped (RFC 4291, section 2.5.5.2), NAT64 (RFC 6052), local NAT64 (RFC 8215),
# IPv4-compatible. A packet to one of the first two arrives at the IPv4 address.
_TRANSLATED = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
_LAST_32_BITS = (*_TRANSLATED, IPv6Network("64:ff9b:1::/48"), IPv6Network("::/96"))

# Ports from 1,024 up: databases and caches, what orchestrates (by HTTP, often without a password), mail,
# proxies, NFS, remote desktops and X11, chat. A receiver of webhooks has no reason to be there.
_PORTS_OF_OTHERS = {
    *(1433, 1521, 3306, 5432, 5984, 6379, 6380, 7687, 9042, 9200, 9300, 11211, 27017, 27018, 27019),
    *(2375, 2376, 2379, 2380, 4222, 5672, 6443, 8500, 9092, 10250, 61616),
    *(1025, 2525, 4190, 1080, 3128, 1723, 2049, 3389, 5060, 5061, 5900, *range(6000, 6064), 6667, 6697),
}

_URL = re.compile(
    r"(?P<scheme>[a-z]+)://((?P<user>[^/?#]*)@)?(?P<host>\[[^]/?#]*]|[^][@:/?#]*)(:(?P<port>[0-9]{1,5}))?"
    r"([/?][^#]*)?(?P<fragment>#.*)?",
    re.DOTALL | re.IGNORECASE | re.ASCII,
)
# The last label begins with a letter: what ends in a number is an address (WHATWG URL, section 3.5).
_NAME = re.compile(r"(?=.{1,253}\Z)(?:[A-Za-z0-9_][A-Za-z0-9_-]{0,62}\.)*[A-Za-z][A-Za-z0-9-]{0,62}\.?")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")


class UrlGuard(msgspec.Struct, frozen=True):
    """Refuses URLs and addresses that webhooks may not call."""

    networks: Networks = ()  # allowed beside public addresses
    allows_loopback: bool = False  # while the service itself listens on a loopback address

    def fault_of_url(self, text: str) -> str | None:
        """Why a URL may not be called, as a phrase; None for a good one. Names are not resolved."""
        if len(text) > URL_MAX:
            return f"expected at most {URL_MAX:,} characters"
        if (match := _URL.fullmatch(text)) is None:
            return "expected a URL such as https://shop.example/hook"
        scheme, host = match["scheme"].lower(), match["host"]
        address = _address_of(host)
        if address is not None and (fault := self.fault_of_address(address)) is not None:
            spelling = "" if host.strip("[]") == str(address) else f" {ascii(host)[1:-1][:100]}"
            return f"the host{spelling} is {fault}"
        port = int(match["port"] or (443 if scheme == "https" else 80))
        # A name, or an address as everybody writes it: what parses it next must not read another one.
        is_plain = isinstance(address, IPv6Address) or host == str(address) or _NAME.fullmatch(host)
        is_own = self.allows_loopback and address is not None and _is_in(address, _LOOPBACK)
        faults = (
            (scheme != "https" and (scheme, is_own) != ("http", True), "expected https"),
            (match["user"] is not None, "expected no user name and no password"),
            (match["fragment"] is not None, "expected no fragment"),
            (not text.isascii() or not text.isprintable() or " " in text, "expected visible ASCII only"),
            (not is_plain or "%" in host, f"expected a host such as {address or 'shop.example'}"),
            (port != 443 and not 1_024 <= port < 65_536, f"expected port 443, or from 1,024 up, not {port}"),
            (port in _PORTS_OF_OTHERS, f"expected a port of a web server, which {port} is not"),
        )
        return next((phrase for applies, phrase in faults if applies), None)

    def fault_of_address(self, address: str | _Address) -> str | None:
        """Why an address may not be called, as a phrase that begins with it; None for a good one."""
        if isinstance(address, str):
            address = ip_address(address)
        if isinstance(address, IPv6Address) and address.scope_id is not None:
            return f"{address}, an address with a scope"
        inner = _inner(address)
        reached = inner if inner is not None and _is_in(address, _TRANSLATED) else address
        allowed = (*self.networks, *(_LOOPBACK if self.allows_loopback else ()))
        if _is_in(address, allowed):
            return None
        for each in (inner, reached):
            if each is not None and not _is_in(each, allowed) and (kind := _kind(each)) is not None:
                return f"{address}{'' if each == address else f', which is {each}'}, {kind}; {_SETTING}"
        return None


def _is_in(address: _Address, networks: Networks) -> bool:
    return any(address in network for network in networks)


def _kind(address: _Address) -> str | None:
    return next((kind for kind, network in _NETWORKS if address in network), None)


def _inner(address: _Address) -> IPv4Address | None:
    """The IPv4 address inside an IPv6 address."""
    if isinstance(address, IPv4Address):
        return None
    if _is_in(address, _LAST_32_BITS) and not _is_in(address, _LOOPBACK) and int(address):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour or (address.teredo[1] if address.teredo else None)


def _address_of(host: str) -> _Address | None:
    """The address that a host spells in any way that programs take; None for a name, and for nonsense."""
    plain = unicodedata.normalize("NFKC", unquote(host)).replace("\u3002", ".").lower().rstrip(".")
    if plain == "localhost" or plain.endswith(".localhost"):  # RFC 6761, section 6.3
        return IPv4Address("127.0.0.1")
    try:
        return IPv6Address(plain[1:-1]) if plain.startswith("[") else _inet_aton(plain)
    except ValueError:
        return None


def _inet_aton(text: str) -> IPv4Address | None:
    """One to four numbers, also octal or hexadecimal; the last one fills what is left. Raises ValueError."""
    parts = text.split(".")
    if len(parts) > 4 or not all(map(_NUMBER.fullmatch, parts)):
        return None
    *high, last = [int(part, 16 if part[:2] == "0x" else 8 if part[0] == "0" else 10) for part in parts]
    if any(number > 255 for number in high) or last >= 256 ** (4 - len(high)):
        return None
    return IPv4Address(last + sum(number << 8 * (3 - place) for place, number in enumerate(high)))
