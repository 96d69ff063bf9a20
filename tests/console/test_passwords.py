"""Hashes of passwords: argon2id with its parameters, two at once, and nothing said about who exists."""

from __future__ import annotations

import asyncio

import pytest
from argon2 import PasswordHasher

from petstore.console.passwords import Passwords
from petstore.core.errors import Unavailable
from tests.support.sign_ins import compared


async def test_a_hash_is_argon2id_by_owasps_parameters() -> None:
    """19 MiB, two passes, one lane, and a salt of its own: two hashes of one password differ."""
    passwords = Passwords()
    first, second = await passwords.hash("caf\u00e9 au lait"), await passwords.hash("cafe\u0301 au lait")
    assert first.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert first != second
    assert await passwords.verify(first, "cafe\u0301 au lait")
    assert not await passwords.verify(first, "cafe au lait")
    assert not passwords.is_old(first)


async def test_a_hash_of_other_parameters_still_works_and_is_renewed() -> None:
    """When OWASP asks for more one day, nobody has to set a new password."""
    old = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash("mein hund bellt")
    passwords = Passwords()
    assert await passwords.verify(old, "mein hund bellt")
    assert passwords.is_old(old)


async def test_without_a_password_a_hash_is_computed_too() -> None:
    """A name that nobody has takes as long as one that somebody has. Text that is no hash is wrong."""
    passwords = Passwords()
    with compared() as seen:
        assert not await passwords.verify(None, "of nobody")
    assert seen == ["of nobody"]
    assert not await passwords.verify("not a hash", "of nobody")


async def test_a_crowd_is_refused_before_it_waits_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 200 wait for the two threads: some seconds."""
    monkeypatch.setattr("petstore.console.passwords._MEMORY_KIB", 8)
    passwords = Passwords()
    answers = await asyncio.gather(*(passwords.hash("x" * 12) for _ in range(203)), return_exceptions=True)
    assert sum(isinstance(answer, Unavailable) for answer in answers) == 3
    assert sum(isinstance(answer, str) for answer in answers) == 200


@pytest.mark.parametrize("password", ["", "\x00", "x" * 10_000])
async def test_any_text_can_be_tried(password: str) -> None:
    """What a sign-in form sends is compared, whatever it is."""
    passwords = Passwords()
    assert not await passwords.verify(None, password)
