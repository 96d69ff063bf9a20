"""Webhooks over TLS, and through an egress proxy."""

from __future__ import annotations

import asyncio
import base64
import socket

import pytest

from petstore.background.sending import Answer
from petstore.core.targets import UrlGuard
from tests.background.conftest import Speaks
from tests.background.kit import OK, Names, listening, proxying, receiving, saying, sender

BODY = b"{}"
HEADERS = {"webhook-signature": "v1,c2VjcmV0"}


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """The receiver and the proxy are on this machine."""
    return Names(monkeypatch, {"shop.example": ["127.0.0.1"], "egress.internal": ["127.0.0.1"]})


class TestTls:
    """The system's roots decide."""

    async def test_a_valid_certificate(self, speaks: Speaks, names: Names) -> None:
        """SNI and Host carry the name, the connection goes to the address, and is used again."""
        tls = speaks("shop")
        tls.set_alpn_protocols(["h2", "http/1.1"])
        async with receiving(saying(OK), tls=tls) as receiver, sender() as sends:
            for _ in range(2):
                got = await sends.send(f"https://Shop.example.:{receiver.port}/hook", BODY, HEADERS)
                assert got.is_success
        assert (receiver.connections, names.asked) == (1, ["Shop.example."])
        assert receiver.names == ["Shop.example"]
        assert f"\r\nHost: Shop.example:{receiver.port}\r\n".encode() in receiver.requests[0]

    @pytest.mark.parametrize(
        ("certificate", "reason"),
        [
            ("unknown", "self-signed certificate"),
            ("elsewhere", "Hostname mismatch, certificate is not valid for 'shop.example'"),
        ],
    )
    async def test_an_invalid_certificate(
        self, speaks: Speaks, names: Names, certificate: str, reason: str
    ) -> None:
        """A receiver that has it gets nothing."""
        async with receiving(saying(OK), tls=speaks(certificate)) as receiver, sender() as sends:
            got = await sends.send(f"https://shop.example:{receiver.port}/", BODY, HEADERS)
        assert got.status is None
        assert got.fault is not None
        assert got.fault.replace("self signed", "self-signed") == f"The certificate is not valid: {reason}."
        assert receiver.requests == []

    async def test_a_server_without_tls(self, names: Names) -> None:
        """It answers TLS's greeting with something else."""

        async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await reader.read()

        async with listening(greet) as port, sender() as sends:
            got = await sends.send(f"https://shop.example:{port}/", BODY, HEADERS)
        assert got == Answer(None, "TLS failed: wrong version number.")

    async def test_a_handshake_that_does_not_end(self, names: Names) -> None:
        """It counts for the deadline."""
        async with receiving(saying(b"")) as receiver, sender(deadline_seconds=0.3) as sends:
            got = await sends.send(f"https://shop.example:{receiver.port}/", BODY, HEADERS)
        assert got == Answer(None, "No answer within 0.3 s.")


class TestProxy:
    """PETSTORE_WEBHOOK_PROXY: what it connects to is its decision."""

    async def test_everything_goes_through_it(self, speaks: Speaks, names: Names) -> None:
        """The proxy gets the name and its password by CONNECT, not the request. It may be a private one."""
        async with (
            receiving(saying(OK), tls=speaks("shop")) as receiver,
            proxying() as (place, proxy),
            sender(
                UrlGuard(), proxy=f"http://me:secret@{place.replace('127.0.0.1', 'egress.internal')}"
            ) as sends,
        ):
            for _ in range(2):
                got = await sends.send(f"https://shop.example:{receiver.port}/", BODY, HEADERS)
                assert got.is_success
        (head,) = proxy.heads
        assert head.startswith(f"CONNECT shop.example:{receiver.port} HTTP/1.1\r\n".encode())
        assert f"Proxy-Authorization: Basic {base64.b64encode(b'me:secret').decode()}".encode() in head
        assert b"webhook" not in head.replace(b"petstore-webhooks", b"")
        assert b"me:secret" not in receiver.requests[0]
        assert b"Proxy-" not in receiver.requests[0]
        assert (receiver.names, names.asked) == (["shop.example"], ["egress.internal"])

    async def test_the_certificate_is_still_checked(self, speaks: Speaks, names: Names) -> None:
        """The proxy can't read along."""
        async with (
            receiving(saying(OK), tls=speaks("elsewhere")) as receiver,
            proxying() as (place, _),
            sender(UrlGuard(), proxy=f"http://{place}") as sends,
        ):
            got = await sends.send(f"https://shop.example:{receiver.port}/", BODY, HEADERS)
        assert got.fault is not None
        assert got.fault.startswith("The certificate is not valid: Hostname mismatch")
        assert receiver.requests == []

    async def test_urls_are_still_checked(self) -> None:
        """An address in one is refused before."""
        async with proxying() as (place, proxy), sender(UrlGuard(), proxy=f"http://{place}") as sends:
            for host in ("10.0.0.5", "localhost", "[::ffff:10.0.0.5]"):
                got = await sends.send(f"https://{host}/", BODY, HEADERS)
                assert got.fault is not None
                assert got.fault.startswith("The URL can't be called: the host")
        assert proxy.heads == []

    async def test_a_refusal_of_the_proxy(self) -> None:
        """The status is told; a password that is wrong is not shown."""
        refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
        async with (
            proxying(refusal) as (place, _),
            sender(UrlGuard(), proxy=f"http://me:secret@{place}") as sends,
        ):
            got = await sends.send("https://shop.example/", BODY, HEADERS)
        assert got == Answer(None, "The proxy answered 403.")

    async def test_a_proxy_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The proxy's name and address are not told to the account."""
        Names(monkeypatch, {})
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            for place in (f"127.0.0.1:{taken.getsockname()[1]}", "egress.internal:3128"):
                async with sender(UrlGuard(), proxy=f"http://{place}") as sends:
                    got = await sends.send("https://shop.example/", BODY, HEADERS)
                assert got == Answer(None, "The proxy can't be reached.")
