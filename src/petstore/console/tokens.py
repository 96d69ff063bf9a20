"""CSRF tokens: each form has one, bound to the session, so that no other site's page can send it.

Each page has another token for the same session: in a compressed page, the length reveals a secret that
repeats beside text of an attacker (BREACH).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from petstore.core.errors import Forbidden

_NONCE_CHARACTERS = 32


class FormExpired(Forbidden):
    """The form's token is not of the present session."""

    def __init__(self) -> None:
        super().__init__("This form is from another session. Load its page again, and send it once more.")


def csrf_token(secret: str) -> str:
    """A token for a form of the session with this secret."""
    nonce = secrets.token_hex(_NONCE_CHARACTERS // 2)
    return nonce + _sign(secret, nonce)


def check_csrf(secret: str, token: str) -> None:
    """Raise FormExpired unless the token belongs to the session with this secret."""
    nonce, signature = token[:_NONCE_CHARACTERS], token[_NONCE_CHARACTERS:]
    if not secret or not hmac.compare_digest(signature.encode(), _sign(secret, nonce).encode()):
        raise FormExpired


def _sign(secret: str, nonce: str) -> str:
    return hmac.new(secret.encode(), f"csrf {nonce}".encode(), hashlib.sha256).hexdigest()
