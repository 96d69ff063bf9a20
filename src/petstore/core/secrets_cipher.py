"""The signing secrets of webhooks as a text for the store: encrypted where there is a key, so that a copy of
the data alone forges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from petstore.core.errors import ConfigurationError, Unavailable
from petstore.core.webhooks import Secret

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

_ENCRYPTED = "sealed:"  # the documents say sealed
_decode = msgspec.json.Decoder(list[Secret]).decode


class SecretsCipher:
    """Encrypts with the first of the keys and decrypts with all; each is URL-safe base64 of 32 bytes. Without
    keys the text is plain JSON."""

    def __init__(self, keys: Sequence[str] = ()) -> None:
        """Raises ConfigurationError when there are keys and no library."""
        self._fernet = _fernet(keys) if keys else None

    def encrypt(self, secrets: Sequence[Secret]) -> str:
        """Secrets as a text for the store."""
        text = msgspec.json.encode(secrets)
        return text.decode() if self._fernet is None else _ENCRYPTED + self._fernet.encrypt(text).decode()

    def decrypt(self, text: str) -> list[Secret]:
        """Raises Unavailable for what another key has encrypted."""
        if not text.startswith(_ENCRYPTED):
            return _decode(text)
        if self._fernet is None:
            raise Unavailable("The secrets of webhooks are sealed, and PETSTORE_SECRETS_KEY is not set.")
        from cryptography.fernet import InvalidToken

        try:
            return _decode(self._fernet.decrypt(text.removeprefix(_ENCRYPTED)))
        except InvalidToken:
            raise Unavailable(
                "The secrets of this webhook are sealed by a key that PETSTORE_SECRETS_KEY does not have."
            ) from None

    def can_decrypt(self, text: str) -> bool:
        """Whether `decrypt` raises nothing."""
        try:
            self.decrypt(text)
        except Unavailable:
            return False
        return True


def _fernet(keys: Sequence[str]) -> MultiFernet:
    try:
        from cryptography.fernet import Fernet, MultiFernet
    except ImportError:
        raise ConfigurationError(
            "PETSTORE_SECRETS_KEY needs the package cryptography, which is not installed: `make setup-scale`"
            " installs it, and in an environment of your own `pip install '.[secrets]'` in this project's"
            " directory."
        ) from None
    return MultiFernet([Fernet(key) for key in keys])
