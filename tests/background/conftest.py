"""Certificates of receivers."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import machine

Speaks = Callable[[str], ssl.SSLContext]


@pytest.fixture(scope="package")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three that signed themselves: for shop.example and below it, again, and for another."""
    folder = tmp_path_factory.mktemp("tls")
    shop = "DNS:shop.example,DNS:*.shop.example"
    for name, address in (("shop", shop), ("unknown", shop), ("elsewhere", "DNS:elsewhere.example")):
        machine.make_certificate(folder / f"{name}.pem", folder / f"{name}.key", address)
    return folder


@pytest.fixture
def speaks(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> Speaks:
    """TLS by the name of a certificate. This machine trusts those of shop.example and elsewhere.example."""
    roots = certificates / "roots.pem"
    roots.write_bytes(b"".join((certificates / f"{name}.pem").read_bytes() for name in ("shop", "elsewhere")))
    monkeypatch.setenv("SSL_CERT_FILE", str(roots))

    def speak(name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / f"{name}.pem", certificates / f"{name}.key")
        return context

    return speak
