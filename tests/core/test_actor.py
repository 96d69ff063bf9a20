"""config/user.py: whom the journal names for a command."""

from __future__ import annotations

import os
import pwd

import pytest

from petstore.config import read_environment
from petstore.config.user import read_actor
from petstore.core.errors import ConfigurationError

_SERVICE = ("petstore", 998, "/usr/sbin/nologin")
_ANNA = ("anna", 1_000, "/bin/bash")
_ROOT = ("root", 0, "/bin/bash")
_NOBODY = ("nobody", 65_534, "/usr/sbin/nologin")
_CONTAINER = None  # an id without a name


@pytest.fixture(autouse=True)
def _nobody_said_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SUDO_USER", "PETSTORE_ACTOR"):
        monkeypatch.delenv(name, raising=False)


def actor_of(monkeypatch: pytest.MonkeyPatch, entry: tuple[str, int, str] | None, **said: str) -> str:
    """The actor of a process that this user runs with these variables."""

    def found(uid: int) -> pwd.struct_passwd:
        if entry is None:
            raise KeyError(uid)
        return pwd.struct_passwd((entry[0], "x", uid, uid, "", "/", entry[2]))

    monkeypatch.setattr(os, "geteuid", lambda: 10_001 if entry is None else entry[1])
    monkeypatch.setattr(pwd, "getpwuid", found)
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    return read_actor()


@pytest.mark.parametrize(
    ("entry", "sudo", "named", "actor"),
    [
        (_SERVICE, "anna", "", "cli:anna"),  # through /usr/local/bin/petstore
        (_SERVICE, "anna", "ben", "cli:anna"),
        (_SERVICE, "", "ben", "cli:ben"),
        (_SERVICE, "", "", "cli:petstore"),
        (_ROOT, "anna", "", "cli:anna"),
        (_ROOT, "", "ben", "cli:ben"),
        (_ROOT, "", "", "cli:root"),
        (_NOBODY, "", "ben", "cli:ben"),
        (_CONTAINER, "", "ben", "cli:ben"),
        (_CONTAINER, "", "", "cli:uid-10001"),
        (_ANNA, "ben", "ben", "cli:anna"),  # a user of one's own has one name
        (_ANNA, "", "two words", "cli:anna"),
        (_ROOT, "a b", "", "cli:root"),
        (_ROOT, "a\x1b[2J", "", "cli:root"),
        (_ROOT, "a" * 65, "", "cli:root"),
        (_ROOT, "a" * 64, "", f"cli:{'a' * 64}"),
    ],
)
def test_the_journal_names_the_person(
    monkeypatch: pytest.MonkeyPatch, entry: tuple[str, int, str] | None, sudo: str, named: str, actor: str
) -> None:
    """It names the caller of sudo where people share a user, then PETSTORE_ACTOR; else the user alone."""
    assert actor_of(monkeypatch, entry, SUDO_USER=sudo, PETSTORE_ACTOR=named) == actor


@pytest.mark.parametrize("named", ["two words", "a\x1b[2J", "\u202eanna", "a" * 65])
def test_a_name_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    """It would be in the journal for ever: one line says what to write."""
    with pytest.raises(ConfigurationError, match="can't be used as a name: write 1 to 64 printable"):
        actor_of(monkeypatch, _CONTAINER, PETSTORE_ACTOR=named)


def test_it_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service is not stopped by it, whatever it says."""
    monkeypatch.setenv("PETSTORE_ACTOR", "two words")
    assert "PETSTORE_ACTOR" not in read_environment()
