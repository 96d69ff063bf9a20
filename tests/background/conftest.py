"""Certificates of receivers, stores of each kind, a receiver and who sends to it; a mail server."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from petstore.core.targets import UrlGuard
from petstore.core.webhooks import Webhook
from petstore.storage.store import Store
from tests.support import machine
from tests.support.backends import opened_backend, store
from tests.support.clock import ManualClock
from tests.support.mail import MailServer, serving_mail
from tests.support.webhooks import Process, Receiver, Recorder, account, opened_receiver, webhook

__all__ = ["store"]

Speaks = Callable[[str], ssl.SSLContext]

# The contract shows that every store does the same: tests of what happens between processes, and of bookmarks
# in a journal, ask for more.
backend = pytest.fixture(params=["sqlite"])(opened_backend)


@pytest.fixture(autouse=True, scope="package")
def trusts_nobody() -> Iterator[None]:
    """Senders read no certificates of the machine, which takes 40 ms for each sender."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", os.devnull)
        yield


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


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with serving_mail() as server:
        yield server


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with opened_receiver() as opened:
        yield opened


@pytest.fixture
async def sender(clock: ManualClock) -> AsyncIterator[Recorder]:
    async with Recorder(UrlGuard(allows_loopback=True), clock=clock, version="test") as opened:
        yield opened


@pytest.fixture
def process(store: Store, sender: Recorder, clock: ManualClock) -> Process:
    return Process(store, sender, clock)


@pytest.fixture
async def hook(store: Store, receiver: Receiver) -> Webhook:
    """A webhook of animals."""
    await account(store, "shop")
    return await store.webhooks.get(await webhook(store, 1, receiver.url(), "pet.*"))
