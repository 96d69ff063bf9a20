"""PETSTORE_DATABASE_URL that can't be right: refused as a fault of the settings (exit 78), with a remedy."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from petstore.core.errors import ConfigurationError, StoreUnavailable
from petstore.core.pets import NewPet
from petstore.storage.backend import backend_for
from petstore.storage.postgres import faults
from tests.support.cases import every_case
from tests.support.clock import ManualClock
from tests.support.journal import ACTOR


def refusal(url: str) -> str:
    """What is said about it."""
    with pytest.raises(ConfigurationError) as refused:
        backend_for(url).open(ManualClock())
    return str(refused.value)


@every_case(
    "place",
    [
        *("127.0.0.1:99999/d", "a..b/d", "db:port/x", "db/x?sslmode=perhaps", "[::1/x", "127.0.0.1:1,/d"),
        *("/d?host=127.0.0.1,&port=1", "/d?host=a,b&port=1,2,3", "/d?host=a,b&port"),
    ],
)
def test_what_cannot_be_understood(place: str) -> None:
    """No traceback, and an example of what can be."""
    assert "is not understood; write postgresql://" in refusal(f"postgresql://{place}")


def test_an_option_that_nobody_knows_is_named(database: str) -> None:
    """The driver hands it to the server, which refuses it by its name."""
    assert "does not take its option conect_timeout" in refusal(f"{database}&conect_timeout=3")


def test_the_missing_root_certificate_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """sslmode=verify-full alone looks for a file in the home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    said = refusal("postgresql://127.0.0.1:1/d?sslmode=verify-full")
    assert f"none in {tmp_path}/.postgresql/root.crt; add sslrootcert=FILE" in said


def test_a_home_that_may_not_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable HOME is named, and is no outage. The driver's error is made here: root may read all."""
    unread = PermissionError(13, "Permission denied", "/srv/other/.pgpass")

    async def connect(*_: object, **__: object) -> None:
        raise unread

    monkeypatch.setattr("asyncpg.connect", connect)
    assert "/srv/other/.pgpass may not be read" in refusal("postgresql://127.0.0.1:1/d")
    unread.filename = None
    with pytest.raises(StoreUnavailable, match="can't be reached"):
        backend_for("postgresql://127.0.0.1:1/d").open(ManualClock())


def test_a_database_that_does_not_exist(database: str) -> None:
    """A database that does not exist is a fault of the settings, no outage; the address is not quoted."""
    said = refusal(database.replace(urlsplit(database).path, "/no_such_shop", 1))
    assert "it has no such database" in said
    assert "shop" not in said


def test_a_user_that_is_refused(database: str) -> None:
    """A refused user is a fault of the settings at the start, later an outage: a password may be changing."""
    said = refusal(database.replace("petstore@", "nobody_here@", 1))
    assert "refuses the user" in said
    assert "nobody_here" not in said
    error = type("Refused", (OSError,), {"sqlstate": "28P01"})()
    assert isinstance(faults.translate_at_start(error), ConfigurationError)
    assert isinstance(faults.translate(error), StoreUnavailable)


async def test_the_encoding_of_other_programs_loses_no_text(database: str) -> None:
    """An address that others use too may name theirs; this service's own is UTF-8."""
    store = backend_for(f"{database}&client_encoding=latin1").open(ManualClock())
    await store.pets.add(NewPet("漢", 1), ACTOR)
    assert (await store.pets.get(1)).name == "漢"
    await store.close()
