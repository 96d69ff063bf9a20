"""The three cookies of the console, and the CSRF tokens of its forms.

The cookies: session, CSRF secret before there is a session, flash message. `__Host-` keeps a cookie to this
host, path / and TLS (RFC 6265bis, section 4.1.3.2). On a loopback address without TLS a browser would refuse
such a name, so there it has no prefix.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response

from petstore.core.errors import Forbidden
from petstore.core.sign_ins import SESSION_MAX_MS, new_token

_SESSION = "petstore-session"
_FORM = "petstore-form"
_FLASH = "petstore-told"
_FLASH_SECONDS = 60
_DEVICE = "petstore-device"  # only 1.1.0 reads it
_NONCE_CHARACTERS = 32


class Cookies:
    """Reads the cookies of a request, and sets those of its response. `is_secure`: the browser uses TLS."""

    def __init__(self, request: Request, is_secure: bool) -> None:
        self._sent = request.cookies
        self._is_secure = is_secure

    def session(self) -> str:
        """The session's token; empty without one."""
        return self._get(_SESSION)

    def keep_session(self, response: Response, token: str) -> None:
        self._set(_SESSION, response, token, SESSION_MAX_MS // 1_000)
        if self._name(_DEVICE) in self._sent:
            self._set(_DEVICE, response, "", 0)

    def end_session(self, response: Response) -> None:
        self._set(_SESSION, response, "", 0)

    def form_secret(self) -> str:
        """The secret that forms are bound to before a session; a new one without a cookie."""
        return self._get(_FORM) or new_token()

    def keep_form_secret(self, response: Response, secret: str) -> None:
        if self._get(_FORM) != secret:
            self._set(_FORM, response, secret, None)

    def flash(self) -> str:
        """The flash message for this page; empty without one."""
        return unquote(self._get(_FLASH))

    def set_flash(self, response: Response, text: str) -> None:
        """Set the flash message of the next page; an empty text removes it."""
        self._set(_FLASH, response, quote(text), _FLASH_SECONDS if text else 0)

    def _name(self, name: str) -> str:
        return f"__Host-{name}" if self._is_secure else name

    def _get(self, name: str) -> str:
        return self._sent.get(self._name(name), "")

    def _set(self, name: str, response: Response, value: str, seconds: int | None) -> None:
        response.set_cookie(
            self._name(name),
            value,
            max_age=seconds,
            path="/",
            secure=self._is_secure,
            httponly=True,
            samesite="lax",
        )


class FormExpired(Forbidden):
    """The form's token is not of the present session."""

    def __init__(self) -> None:
        super().__init__("This form is from another session. Load its page again, and send it once more.")


def csrf_token(secret: str) -> str:
    """A token for a form of the session with this secret: no other site's page can send the form.

    Each page has another token: in a compressed page, the length reveals a secret that repeats beside text of
    an attacker (BREACH).
    """
    nonce = secrets.token_hex(_NONCE_CHARACTERS // 2)
    return nonce + _sign(secret, nonce)


def check_csrf(secret: str, token: str) -> None:
    """Raise FormExpired unless the token belongs to the session with this secret."""
    nonce, signature = token[:_NONCE_CHARACTERS], token[_NONCE_CHARACTERS:]
    if not secret or not hmac.compare_digest(signature.encode(), _sign(secret, nonce).encode()):
        raise FormExpired


def _sign(secret: str, nonce: str) -> str:
    return hmac.new(secret.encode(), f"csrf {nonce}".encode(), hashlib.sha256).hexdigest()
