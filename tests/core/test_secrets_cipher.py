"""Signing secrets of webhooks in the store: encrypted where there is a key, decrypted with former keys."""

from __future__ import annotations

import base64
import sys

import pytest

from petstore.core.errors import ConfigurationError, Unavailable
from petstore.core.secrets_cipher import SecretsCipher
from petstore.core.webhooks import Secret, mint

OLD, NEW = (base64.urlsafe_b64encode(bytes([number]) * 32).decode() for number in (1, 2))


def test_an_encrypted_text_shows_nothing_of_it() -> None:
    """An encrypted text shows no secret and is never the same twice; without a key it is plain."""
    secrets = [mint(), Secret(mint().text, 5)]
    encrypted = [SecretsCipher([NEW]).encrypt(secrets) for _ in range(2)]
    assert encrypted[0] != encrypted[1]
    for each in secrets:
        assert each.text.removeprefix("whsec_")[:20] not in "".join(encrypted)
        assert each.text in SecretsCipher().encrypt(secrets)
    assert [SecretsCipher([NEW]).decrypt(text) for text in encrypted] == [secrets, secrets]
    assert SecretsCipher().decrypt(SecretsCipher().encrypt(secrets)) == secrets


def test_a_key_takes_the_place_of_another() -> None:
    """The first encrypts, all decrypt: with the new key before the former one nothing is lost, and what was
    stored without a key stays readable."""
    secrets, both = [mint()], SecretsCipher([NEW, OLD])
    for before in (SecretsCipher(), SecretsCipher([OLD])):
        assert both.decrypt(before.encrypt(secrets)) == secrets
    assert SecretsCipher([NEW]).decrypt(both.encrypt(secrets)) == secrets


@pytest.mark.parametrize(
    ("keys", "message"), [([OLD], "PETSTORE_SECRETS_KEY does not have"), ([], "is not set")]
)
def test_what_another_key_has_encrypted_is_refused(keys: list[str], message: str) -> None:
    """The words are for the operator: a try that can't be signed is a failure, and is repeated."""
    with pytest.raises(Unavailable, match=message):
        SecretsCipher(keys).decrypt(SecretsCipher([NEW]).encrypt([mint()]))


def test_a_key_without_its_library_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is stored as it is where somebody asked for encryption."""
    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    with pytest.raises(ConfigurationError, match="setup-scale"):
        SecretsCipher([NEW])
    SecretsCipher()
