"""URLs that a customer forges to reach what only this service reaches: no connection is made, and the answer
names the address that was meant.

Real listeners count connections. What is called elsewhere than on loopback arrives at them too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from ipaddress import ip_address
from typing import Any

import pytest
import pytest_asyncio

from petstore.background.sending import Answer
from petstore.core.targets import UrlGuard
from tests.background.conftest import Speaks
from tests.background.kit import Names, Receiver, closing, listening, receiving, sender
from tests.support.cases import every_case

# The name of a host as it is forged, and what the refusal has to name.
LITERALS = {
    "127.0.0.1": "127.0.0.1",
    "127.1": "127.0.0.1",
    "127.0.1": "127.0.0.1",
    "0x7f.1": "127.0.0.1",
    "2130706433": "127.0.0.1",
    "017700000001": "127.0.0.1",
    "127.0.0.1.": "127.0.0.1",
    "LOCALHOST": "127.0.0.1",
    "%31%32%37.0.0.1": "127.0.0.1",
    "\uff11\uff12\uff17\u30020\u30020\u30021": "127.0.0.1",
    "127.9.9.9": "127.9.9.9",
    "[::1]": "::1",
    "[0:0:0:0:0:0:0:1]": "::1",
    "0.0.0.0": "0.0.0.0",
    "[::]": "::",
    "10.0.0.5": "10.0.0.5",
    "172.16.0.1": "172.16.0.1",
    "192.168.1.1": "192.168.1.1",
    "[fd00::1]": "fd00::1",
    "100.64.0.1": "100.64.0.1",
    "169.254.1.1": "169.254.1.1",
    "[fe80::1]": "fe80::1",
    "[fe80::1%25lo]": "fe80::1%lo",
    "169.254.169.254": "169.254.169.254",
    "168.63.129.16": "168.63.129.16",
    "100.100.100.200": "100.100.100.200",
    "[fd00:ec2::254]": "fd00:ec2::254",
    "[::ffff:127.0.0.1]": "127.0.0.1",
    "[::ffff:10.0.0.5]": "10.0.0.5",
    "[::127.0.0.1]": "127.0.0.1",
    "[64:ff9b::127.0.0.1]": "127.0.0.1",
    "[64:ff9b:1::127.0.0.1]": "127.0.0.1",
    "[2002:7f00:1::1]": "127.0.0.1",
    "[2001:0:4136:e378:8000:63bf:80ff:fffe]": "127.0.0.1",
    "8.8.8.8@127.0.0.1": "127.0.0.1",
    "shop.example\\@127.0.0.1": "127.0.0.1",
}
# Names, the addresses that they have, and what the refusal has to name.
NAMES = {
    "loopback.example": ("127.0.0.1", "127.0.0.1"),
    "loopback6.example": ("::1", "::1"),
    "mapped.example": ("::ffff:127.0.0.1", "127.0.0.1"),
    "private.example": ("10.0.0.5", "10.0.0.5"),
    "metadata.example": ("169.254.169.254", "169.254.169.254"),
    "last.example": ("8.8.8.8 2606:4700::1111 10.0.0.5", "10.0.0.5"),
    "first.example": ("127.0.0.1 8.8.8.8", "127.0.0.1"),
}
FORGED = {**LITERALS, **{name: named for name, (_, named) in NAMES.items()}}
# No part of the system reads these as an address: they would reach nothing without a guard either.
UNREADABLE = {"127.1", "127.0.1", "2130706433", "017700000001", "127.0.0.1.", "%31%32%37.0.0.1"}
UNREADABLE |= {"\uff11\uff12\uff17\u30020\u30020\u30021", "shop.example\\@127.0.0.1"}
PORTS = (2375, 3306, 5432, 6000, 6379, 9200, 11211, 27017)

PUBLIC = "8.8.8.8"


class Blind(UrlGuard, frozen=True):
    """Refuses nothing."""

    def fault_of_url(self, text: str) -> None:
        return None

    def fault_of_address(self, address: object) -> None:
        return None


class Network:
    """What answers inside, at addresses that are not public, and `outside`, at PUBLIC."""

    def __init__(self, outside: Receiver, names: Names) -> None:
        self.outside = outside
        self.names = names
        self.port = 0
        self.has_ipv6 = True
        self.reached = 0  # connections to what nobody may call

    async def count(self, _: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        """A listener inside: it ends a connection at once."""
        self.reached += 1

    def place(self, host: str, port: int) -> tuple[str, int]:
        """The address to which a connection really goes."""
        address = ip_address(host)
        if host == PUBLIC:
            return "127.0.0.1", self.outside.port
        if address.is_loopback or address.is_unspecified or host.startswith("::ffff:7f"):
            return host, port
        return ("127.0.0.1" if address.version == 4 else "::1"), self.port


@pytest_asyncio.fixture
async def network(speaks: Speaks, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Network]:
    """Listeners, names, and the way from each address to a listener."""
    table = {name: [addresses] for name, (addresses, _) in NAMES.items()}
    table |= {"turning.shop.example": [PUBLIC, "127.0.0.1"]}
    table |= {"localhost": ["127.0.0.1"], "0x7f.1": ["127.0.0.1"]}  # as the machine has them
    answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    async with AsyncExitStack() as opened:
        outside = await opened.enter_async_context(receiving(closing(answer), tls=speaks("shop")))
        found = Network(outside, Names(monkeypatch, table))
        for host in ("127.0.0.1", "127.9.9.9", "::1"):
            try:
                found.port = await opened.enter_async_context(listening(found.count, host, found.port))
            except OSError:
                assert host == "::1"
                found.has_ipv6 = False
        connect = asyncio.SelectorEventLoop.sock_connect

        async def sock_connect(loop: Any, sock: Any, address: Any) -> None:
            await connect(loop, sock, found.place(*address[:2]))

        monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_connect", sock_connect)
        yield found


async def try_url(url: str, guard: UrlGuard) -> Answer:
    """The outcome of an attempt."""
    async with sender(guard) as sends:
        return await sends.send(url, b"{}", {})


@every_case("host", FORGED)
async def test_a_forged_target_is_not_called(network: Network, host: str) -> None:
    """Spellings of addresses, IPv4 in IPv6, and names. Without a guard it is: the test is able to fail."""
    before = network.reached + network.outside.connections
    got = await try_url(f"https://{host}:{network.port}/", UrlGuard())
    assert network.reached + network.outside.connections == before
    assert got.status is None
    assert got.fault is not None
    assert f" {FORGED[host]}," in got.fault
    assert got.fault.endswith(("; PETSTORE_WEBHOOK_NETWORKS allows networks.", ", an address with a scope."))
    await try_url(f"https://{host}:{network.port}/", Blind())
    if network.has_ipv6 or ":" not in f"{host} {FORGED[host]}":
        assert (network.reached + network.outside.connections > before) is (host not in UNREADABLE)


async def test_a_name_that_turns_is_not_called_again(network: Network) -> None:
    """It has a public address first, and then another: each connection is judged anew, by one look-up."""
    async with sender(UrlGuard()) as sends:
        url = "https://turning.shop.example/"
        assert (await sends.send(url, b"{}", {})).is_success
        got = await sends.send(url, b"{}", {})
    assert got.fault is not None
    assert got.fault.startswith("turning.shop.example is 127.0.0.1, a loopback address;")
    assert (network.reached, network.outside.connections) == (0, 1)
    assert network.names.asked == ["turning.shop.example"] * 2


@pytest.mark.parametrize("port", PORTS)
async def test_a_port_of_a_database_is_not_called(port: int) -> None:
    """It holds where loopback may be called; without the guard a listener there is reached."""
    with suppress(OSError):  # another program has the port
        async with receiving(closing(b""), host="127.77.0.1", port=port) as receiver:
            url = f"http://127.77.0.1:{port}/"
            got = await try_url(url, UrlGuard(allows_loopback=True))
            assert (
                got.fault == f"The URL can't be called: expected a port of a web server, which {port} is not."
            )
            assert receiver.connections == 0
            await try_url(url, Blind())
            assert receiver.connections == 1
