"""Who a client is on the network; nobody can choose that by a header."""

from __future__ import annotations

from ipaddress import ip_network

from petstore.core.client_address import (
    UNKNOWN_CLIENT,
    client_address,
    is_host_of_ours,
    is_within,
    network_of,
    parse_address,
)
from tests.support.cases import every_case

TRUSTED = (ip_network("10.0.0.0/8"), ip_network("2001:db8::/32"))


@every_case(
    ("peer", "forwarded_for", "client"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),  # an untrusted peer is itself, whatever it says
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.1", "198.51.100.1"),  # the right-most untrusted hop
        ("10.0.0.1", "1.2.3.4,198.51.100.1 , 10.0.0.2", "198.51.100.1"),
        ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),  # all trusted: the left-most of them
        ("10.0.0.1", "1.2.3.4, , 10.0.0.2,", "1.2.3.4"),  # what is empty is not a hop
        ("10.0.0.1", " ", "10.0.0.1"),
        ("10.0.0.1", ",,", UNKNOWN_CLIENT),
        ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),  # IPv4-mapped IPv6
        ("10.0.0.1", "2001:db9::7", "2001:db9::7"),
        ("2001:db8::1", "2001:db9::7", "2001:db9::7"),
        ("unknown", "198.51.100.1", "unknown"),
        ("10.0.0.1", "1.2.3.4, nonsense, 10.0.0.2", UNKNOWN_CLIENT),  # nor what stands left of it
    ],
)
def test_the_client_is_the_right_most_hop_that_is_not_trusted(
    peer: str, forwarded_for: str, client: str
) -> None:
    """The left end of X-Forwarded-For is whatever the client wrote."""
    assert client_address(peer, forwarded_for, TRUSTED) == client


@every_case(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),  # one /64 is one subscriber
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("unknown", "a unix socket", True),
    ],
)
def test_what_counts_as_one_client(one: str, other: str, same: bool) -> None:
    """IPv4 by address, IPv6 by /64, everything else together."""
    assert (network_of(one) == network_of(other)) is same


@every_case(
    ("hop", "client"),
    [
        ("198.51.100.1:5555", "198.51.100.1"),
        ("10.0.0.2:80", "10.0.0.2"),
        ("[2001:db9::7]:99", "2001:db9::7"),
        ("[2001:db9::7]", "2001:db9::7"),
        ("[2001:db8::1]:99", "2001:db8::1"),
        ("[::ffff:198.51.100.1]:5", "::ffff:198.51.100.1"),
        *(
            (unreadable, UNKNOWN_CLIENT)
            for unreadable in (
                "unknown", "_hidden", "nonsense", "198.51.100.1:", "198.51.100.1:x", "198.51.100.1:123456",
                "[198.51.100.1", "2001:db9::7]:1", "[]", "[]:1", ":80", "198.51.100.256:1", "é",
                "198.51.100.1 127.0.0.1", "9" * 10_000, "127.1", "2130706433", "0x7f000001",
            )
        ),
    ],
)  # fmt: skip
def test_hops_as_proxies_write_them(hop: str, client: str) -> None:
    """They have a port or none; what can't be read is somebody unknown, and never the proxy itself."""
    assert client_address("10.0.0.1", hop, TRUSTED) == client
    assert client_address("10.0.0.1", f"{hop}, 10.0.0.2", TRUSTED) == client
    assert client_address("203.0.113.9", hop, TRUSTED) == "203.0.113.9"


def test_by_default_no_proxy_is_trusted_and_the_header_means_nothing() -> None:
    """X-Forwarded-For is ignored by default, else a client could choose the address it is counted under."""
    assert client_address("10.0.0.1", "198.51.100.1", ()) == "10.0.0.1"


@every_case(
    ("text", "inside"),
    [
        ("10.255.0.1", True),
        ("11.0.0.1", False),
        ("::ffff:10.1.1.1", True),
        ("2001:db8::1", True),
        ("nonsense", False),
        ("", False),
        ("10.0.0.1:80", False),
        ("010.0.0.1", False),
    ],
)
def test_an_address_is_in_a_network_or_it_is_no_address(text: str, inside: bool) -> None:
    """Text that is not an address is in no network."""
    assert is_within(text, TRUSTED) is inside


def test_addresses_are_read_as_what_they_are() -> None:
    """An IPv4-mapped IPv6 address is the IPv4 one."""
    assert str(parse_address("::ffff:192.0.2.1")) == "192.0.2.1"
    assert str(parse_address("2001:0db8::0001")) == "2001:db8::1"
    assert parse_address("localhost") is None


@every_case("host", ["localhost", "127.0.0.1:80", "[::1]:80", "[::ffff:127.0.0.1]", "shop.example"])
def test_hosts_of_ours(host: str) -> None:
    """Names that are ours, addresses, and names without a dot: no page can have them as its host."""
    assert is_host_of_ours(host, frozenset({"shop.example"}))
    assert not is_host_of_ours("other.example", frozenset({"shop.example"}))
