"""TLS to PostgreSQL: who insists on the right certificate gets it, or no connection."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from petstore.core.errors import ConfigurationError, StoreUnavailable
from petstore.core.pets import NewPet
from petstore.storage.backend import backend_for
from petstore.storage.store import Store
from tests.support import machine
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR
from tests.support.postgres import by_way_of, fresh_database, listening_address
from tests.support.proxy import open_proxy
from tests.support.rights import without_rights
from tools.servers.petstore import run

HERE = "IP:127.0.0.1"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three that signed themselves, each with its key beside it: two for this address, one for another."""
    folder = tmp_path_factory.mktemp("tls")
    for name, address in (("mine", HERE), ("others", HERE), ("elsewhere", "DNS:db.example")):
        machine.make_certificate(folder / f"{name}.pem", folder / f"{name}.key", address)
    return {path.stem: path for path in folder.glob("*.pem")}


@asynccontextmanager
async def proxys_tls(certificate: Path) -> AsyncIterator[str]:
    """Something before PostgreSQL that speaks TLS for it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    with fresh_database() as url:
        async with open_proxy(listening_address(url), tls=context) as proxy:
            yield by_way_of(url, proxy.port)


async def open_store(url: str, sslmode: str, root: Path | None = None) -> Store:
    """Open the store in a thread, since a proxy may live on this event loop."""
    asked = f"{url}{'&' if '?' in url else '?'}sslmode={sslmode}" + (f"&sslrootcert={root}" if root else "")
    return await asyncio.to_thread(backend_for(asked).open, ManualClock())


async def test_the_right_certificate_is_spoken_to(certificates: dict[str, Path]) -> None:
    """sslmode=verify-full, with the root that signed it: every connection of the pool is encrypted."""
    async with proxys_tls(certificates["mine"]) as url:
        store = await open_store(url, "verify-full", certificates["mine"])
        assert (await store.pets.add(NewPet("Rex", 1), ACTOR)).pet.name == "Rex"
        await store.close()


async def test_a_certificate_of_somebody_else_is_refused(certificates: dict[str, Path]) -> None:
    """Another root did not sign it. The line says what is wrong, as of one that has expired."""
    async with proxys_tls(certificates["mine"]) as url:
        with pytest.raises(StoreUnavailable, match=r"URL insists on: self.signed certificate"):
            await open_store(url, "verify-full", certificates["others"])


async def test_a_certificate_for_another_address_is_refused(certificates: dict[str, Path]) -> None:
    """The right root, and another name in it; verify-ca asks for the root alone."""
    root = certificates["elsewhere"]
    async with proxys_tls(root) as url:
        with pytest.raises(StoreUnavailable, match="PETSTORE_DATABASE_URL insists on: IP address mismatch"):
            await open_store(url, "verify-full", root)
        await (await open_store(url, "verify-ca", root)).close()


async def test_a_root_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Exit 78: it is the settings that are wrong."""
    with pytest.raises(ConfigurationError, match=r"none\.pem can't be used as its sslrootcert: No such file"):
        await open_store("postgresql://db.example/x", "verify-full", tmp_path / "none.pem")


async def test_a_root_without_a_certificate_is_refused(tmp_path: Path) -> None:
    """The driver says of it what it says of another certificate of the server."""
    (tmp_path / "root.pem").write_text("no certificate")
    with pytest.raises(ConfigurationError, match=r"root\.pem can't be used as its sslrootcert: it holds no"):
        await open_store("postgresql://127.0.0.1:1/x", "verify-full", tmp_path / "root.pem")


@pytest.mark.parametrize("closed", ["root.pem", "."])
def test_a_root_that_the_service_may_not_read_is_refused(closed: str, tmp_path: Path) -> None:
    """The driver says of it what it says of an outage."""
    root = tmp_path / "tls" / "root.pem"
    root.parent.mkdir()
    root.touch()
    (root.parent / closed).chmod(0)
    url = f"postgresql://db.example/x?sslmode=verify-full&sslrootcert={root}"
    done = run("db", "check", settings={"database_url": url}, prefix=without_rights())
    assert f"{root} can't be used as its sslrootcert: Permission denied." in done.stderr
    assert done.returncode == 78


@pytest.mark.parametrize("mode", ["require", "verify-full"])
async def test_a_server_without_tls_is_refused_where_it_is_asked_for(
    mode: str, certificates: dict[str, Path]
) -> None:
    """Nothing goes over the wire in clear instead."""
    with fresh_database() as url:
        async with open_proxy(listening_address(url)) as proxy:
            with pytest.raises(StoreUnavailable, match="does not speak TLS"):
                await open_store(by_way_of(url, proxy.port), mode, certificates["mine"])
