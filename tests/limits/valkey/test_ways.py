"""Ways to Valkey: TCP, TLS with a verified certificate, a user and a password, a database of its own."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from petstore.core.keys import Caller
from petstore.core.limits.decision import Decision
from tests.support import machine
from tests.support.clock import ManualClock
from tests.support.proxy import Proxy, open_proxy
from tests.support.shared import Replicas, Watch
from tests.support.valkey import ValkeyServer
from tests.support.windows import limits_of

CALLER = Caller(1, 1, limits_of(100, 1_000))


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    """A server with a user who may do what the service does, and no more."""
    with ValkeyServer().start() as opened:
        opened.client("ACL", "SETUSER", "shop", "on", ">p@ss word", "~{petstore}:*", *_COMMANDS)
        yield opened


_COMMANDS = (
    *("-@all", "+evalsha", "+eval", "+script|load", "+client|setname", "+select", "+time", "+mget", "+get"),
    *("+set", "+exists", "+zadd", "+zrem", "+zremrangebyscore", "+info"),
)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for the name localhost, in one file."""
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    machine.make_certificate(Path(f"{path}.crt"), path, "DNS:localhost")
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


def passed_on(server: ValkeyServer, tls: ssl.SSLContext | None = None) -> AbstractAsyncContextManager[Proxy]:
    """A port that leads to the server's socket, with TLS in front of it or not."""
    return open_proxy(server.socket, tls, asked_for_tls=False)


def encrypting(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def ask(url: str, *, publishes: bool = False) -> tuple[Decision, Watch]:
    """One decision over this way, and what the limiter told about it; then, perhaps, a change of versions."""
    async with Replicas(url, ManualClock(), steered=False) as replicas:
        replica = await replicas.open(4)
        decision = await replica.take(CALLER)
        if publishes:
            async with replica.publisher.changing(catalogue=True, keyring=True):
                pass
    return decision, replica.watch


class TestWays:
    """Each of them is decided by Valkey."""

    async def test_tcp_with_a_user_of_least_rights(self, server: ValkeyServer) -> None:
        """The commands of the scripts and of the greeting are all that it needs; keys of one prefix."""
        async with passed_on(server) as proxy:
            decision, watch = await ask(f"valkey://shop:p%40ss%20word@localhost:{proxy.port}", publishes=True)
        assert (decision.windows[0].limit, watch.reasons) == (100, [])
        assert False not in watch.data_sets

    async def test_a_database_of_its_own(self, server: ValkeyServer) -> None:
        """Another database has other counters."""
        await ask(f"{server.url}?db=3")
        other, _ = await ask(f"{server.url}?db=4")
        again, watch = await ask(f"{server.url}?db=3")
        assert [decision.windows[0].remaining for decision in (other, again)] == [99, 98]
        assert watch.reasons == []

    async def test_tls_takes_a_certificate_that_a_named_authority_has_signed(
        self, server: ValkeyServer, certificate: Path
    ) -> None:
        """The address of the server names an operator's own authority."""
        async with passed_on(server, encrypting(certificate)) as proxy:
            decision, watch = await ask(f"valkeys://localhost:{proxy.port}/5?ca={certificate}.crt")
        assert (decision.windows[0].limit, watch.reasons) == (100, [])


class TestNoWay:
    """An outage, whose reason is told; the share decides."""

    async def test_a_certificate_that_nobody_signed(self, server: ValkeyServer, certificate: Path) -> None:
        """Never taken, whatever the URL says."""
        async with passed_on(server, encrypting(certificate)) as proxy:
            decision, watch = await ask(f"valkeys://localhost:{proxy.port}")
        assert decision.windows[0].limit == 25
        assert "certificate" in watch.reasons[0]

    @pytest.mark.parametrize("user", ["shop:wrong@", "nobody:x@", ":wrong@"])
    async def test_a_wrong_password(self, server: ValkeyServer, user: str) -> None:
        """Said as the server says it, without the password."""
        server.client("ACL", "SETUSER", "default", ">right")
        try:
            decision, watch = await ask(f"unix://{user}{server.socket}")
        finally:
            server.client_with("right")("ACL", "SETUSER", "default", "nopass")
        assert decision.windows[0].limit == 25
        assert watch.reasons[0].startswith("WRONGPASS")
        assert "wrong@" not in watch.reasons[0]
