"""TLS to PostgreSQL: who insists on the right certificate gets it, or no connection."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from petstore.errors import ConfigurationError, StoreUnavailable
from petstore.pets import NewPet
from petstore.storage import StoreOptions, open_storage
from tests.support.clock import ManualClock
from tests.support.postgres import PostgresServer, absent

OPTIONS = StoreOptions(database_timeout_ms=5_000)


def make_certificate(folder: Path, name: str, address: str) -> Path:
    """A certificate that signed itself, for one address, with its key beside it."""
    program = shutil.which("openssl")
    if program is None:
        absent("openssl")
    certificate = folder / f"{name}.pem"
    subprocess.run(
        [
            *(
                program,
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "1",
                "-subj",
                "/CN=petstore",
            ),
            *("-addext", f"subjectAltName={address}", "-keyout", folder / f"{name}.key", "-out", certificate),
        ],
        check=True,
        capture_output=True,
    )
    return certificate


class Encrypted:
    """A server with a certificate for the address that it listens on, and one that it does not have."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = PostgresServer(tcp=True)
        self.other = make_certificate(folder, "other", "IP:127.0.0.1")
        self.root = self.use(make_certificate(folder, "mine", "IP:127.0.0.1"))

    def use(self, certificate: Path) -> Path:
        """Start the server, or start it again, with a certificate."""
        self.server.stop()
        for source, name in ((certificate, "server.crt"), (certificate.with_suffix(".key"), "server.key")):
            target = self.server.folder / "data" / name
            shutil.copy(source, target)
            target.chmod(0o600)
            if os.geteuid() == 0:
                shutil.chown(target, "nobody", "nogroup" if _has_group("nogroup") else "nobody")
        self.server.set("ssl=on")
        self.server.start()
        return certificate

    def url(self, sslmode: str, root: Path | None = None) -> str:
        suffix = f"?sslmode={sslmode}" + (f"&sslrootcert={root}" if root else "")
        return self.server.url(tcp=True) + suffix


def _has_group(name: str) -> bool:
    import grp

    return any(group.gr_name == name for group in grp.getgrall())


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    opened = Encrypted(tmp_path_factory.mktemp("tls"))
    yield opened
    opened.server.drop()


async def test_the_right_certificate_is_spoken_to(encrypted: Encrypted) -> None:
    """sslmode=verify-full, with the root that signed it: every connection of the pool is encrypted."""
    store = open_storage(encrypted.url("verify-full", encrypted.root), ManualClock(), OPTIONS)
    assert (await store.pets.add(NewPet("Rex", 1))).pet.name == "Rex"
    rows = await store._database.fetch("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")  # type: ignore[attr-defined]
    assert rows[0][0] is True
    await store.close()


def test_a_certificate_of_somebody_else_is_refused(encrypted: Encrypted) -> None:
    """Another root did not sign it."""
    with pytest.raises(StoreUnavailable, match="certificate is not the one that PETSTORE_DATABASE_URL"):
        open_storage(encrypted.url("verify-full", encrypted.other), ManualClock(), OPTIONS)


def test_a_certificate_for_another_address_is_refused(encrypted: Encrypted) -> None:
    """The right root, and another name in it; verify-ca asks for the root alone."""
    elsewhere = encrypted.use(make_certificate(encrypted.folder, "elsewhere", "DNS:db.example"))
    with pytest.raises(StoreUnavailable, match="certificate is not the one that PETSTORE_DATABASE_URL"):
        open_storage(encrypted.url("verify-full", elsewhere), ManualClock(), OPTIONS)
    open_storage(encrypted.url("verify-ca", elsewhere), ManualClock(), OPTIONS)


def test_a_root_that_is_not_there_is_refused(encrypted: Encrypted, tmp_path: Path) -> None:
    """Exit 78: it is the settings that are wrong."""
    with pytest.raises(ConfigurationError, match=r"there is no file .*none\.pem, which is its sslrootcert"):
        open_storage(encrypted.url("verify-full", tmp_path / "none.pem"), ManualClock(), OPTIONS)


def test_a_server_without_tls_is_refused_where_it_is_asked_for(encrypted: Encrypted) -> None:
    """Nothing goes over the wire in clear instead."""
    encrypted.server.stop()
    encrypted.server.set("ssl=off")
    encrypted.server.start()
    for mode in ("require", "verify-full"):
        with pytest.raises(StoreUnavailable, match="does not speak TLS"):
            open_storage(encrypted.url(mode, encrypted.root), ManualClock(), OPTIONS)
