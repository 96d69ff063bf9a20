"""Rules of a person's password: NIST SP 800-63B (3.1.1.2) and OWASP ASVS 5 (6.2).

Long enough, and not easily guessed. Nothing is asked of its characters, and it never expires.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from petstore.core import packaged
from petstore.core.errors import Invalid

PASSWORD_MIN_CHARACTERS = 12
PASSWORD_MAX_CHARACTERS = 128
# NFC makes one of four code points at most: what is cut off belongs to a password that is too long anyway.
_READ_MAX_CHARACTERS = 4 * (PASSWORD_MAX_CHARACTERS + 1)
_REMAINS_MIN_CHARACTERS = 8  # beside the person's name or the service's
_SERVICE_NAMES = ("petstore", "pet store", "pet-store")
# A piece of up to four characters, again and again.
_REPETITION = re.compile(r"(.{1,4}?)\1+.?.?.?", re.DOTALL)
_RUNS = ("0123456789" * 3, "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm")


def normalized(password: str) -> str:
    """NFC (RFC 8265): the same password from a keyboard that writes é in two characters is the same.

    Of one that is far too long only its beginning, which is too long as well: 10,000 accents on one letter
    would take a third of a second.
    """
    return unicodedata.normalize("NFC", password[:_READ_MAX_CHARACTERS])


def check_password(password: str, name: str) -> None:
    """Raise Invalid unless the person with this name may have it. Characters are code points."""
    password = normalized(password)
    if len(password) < PASSWORD_MIN_CHARACTERS:
        raise Invalid("password", f"A password has at least {PASSWORD_MIN_CHARACTERS} characters.")
    if len(password) > PASSWORD_MAX_CHARACTERS:
        raise Invalid("password", f"A password has at most {PASSWORD_MAX_CHARACTERS} characters.")
    plain = password.casefold()
    for word in (name.casefold(), *_SERVICE_NAMES):
        if word in plain and len(plain.replace(word, "")) < _REMAINS_MIN_CHARACTERS:
            raise Invalid("password", f"{word!r} is too much of this password. Choose another.")
    if plain in _common() or _REPETITION.fullmatch(plain) or _is_a_run(plain):
        raise Invalid("password", "This password is easy to guess. Choose another.")


def _is_a_run(plain: str) -> bool:
    return any(plain in run or plain[::-1] in run for run in _RUNS)


@cache
def _common() -> frozenset[str]:
    """The passwords of at least 12 characters among the 20,000 most used in leaked lists, and a few like
    them."""
    text = packaged.files("petstore.core").joinpath("common_passwords.txt").read_text()
    return frozenset(text.splitlines())
