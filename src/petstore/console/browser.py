"""The browser of a request: its address, TLS, the origin of its form, its cookies, tokens for its forms."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response

from petstore.core.client_address import (
    UNKNOWN_CLIENT,
    Networks,
    client_address,
    is_host_of_ours,
    is_within,
    parse_address,
)
from petstore.core.errors import Forbidden
from petstore.core.sign_ins import SESSION_MAX_MS, new_sign_in_token
from petstore.web.addresses import scheme_of

_PORT = re.compile(r":[0-9]*$")
# Headers that proxies add.
_PROXY_HEADERS = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
_OTHER_NAME = (
    "The console is not shown under this name. An operator sets PETSTORE_BASE_URL to the address"
    " of the service, or adds the name to PETSTORE_OPS_HOSTS."
)
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    # The referrer has no path: a one-time link is a page's address, and a proxy logs it with each file.
    "referrer-policy": "strict-origin",
    "x-content-type-options": "nosniff",
    # The back button shows no page after signing out.
    "cache-control": "no-store",
    "vary": "accept-encoding, hx-request",
}
# The cookies: session, CSRF secret before there is a session, flash message.
_SESSION = "petstore-session"
_FORM = "petstore-form"
_FLASH = "petstore-told"
_FLASH_SECONDS = 60
_DEVICE = "petstore-device"  # only 1.1.0 reads it
_NONCE_CHARACTERS = 32


class Browser:
    """Reads a request, and sets the cookies of its response.

    `trusted`: proxies whose X-Forwarded-For and -Proto count. `hosts`: the service's names. `suffix` ends the
    names of cookies, which ignore ports.

    `__Host-` keeps a cookie to this host, path / and TLS (RFC 6265bis, section 4.1.3.2). On a loopback
    address without TLS a browser would refuse such a name, so there it has no prefix.
    """

    def __init__(self, request: Request, trusted: Networks, hosts: frozenset[str], suffix: str) -> None:
        self._headers = request.headers
        self._cookies = _cookies_of("; ".join(request.headers.getlist("cookie")))
        self._peer = request.client.host if request.client else UNKNOWN_CLIENT
        self._trusted = trusted
        self._hosts = hosts
        self._suffix = suffix
        # Whether the reader's browser uses TLS.
        self.is_secure = scheme_of(request, trusted) == "https"

    @property
    def address(self) -> str:
        """The client's address, behind trusted proxies too."""
        return client_address(self._peer, ",".join(self._headers.getlist("x-forwarded-for")), self._trusted)

    def takes_secrets(self) -> bool:
        """Whether a password may be sent: over TLS, or from a browser on this machine.

        An unconfigured proxy may send `Host: 127.0.0.1` for any request. Its forwarding headers or the form's
        Origin reveal it.
        """
        if self.is_secure:
            return True
        asked_for = [self._headers.get("host", ""), *map(_host_of, self._headers.getlist("origin"))]
        return all(map(_is_loopback, asked_for)) and not self._has_unknown_proxy()

    def _has_unknown_proxy(self) -> bool:
        is_known = is_within(self._peer, self._trusted)
        return not is_known and any(name in self._headers for name in _PROXY_HEADERS)

    def check_host(self) -> None:
        """Prevent DNS rebinding. Raises Forbidden."""
        hosts = self._headers.getlist("host")
        if len(hosts) != 1 or not is_host_of_ours(hosts[0], self._hosts):
            raise Forbidden(_OTHER_NAME)

    def check_origin(self) -> None:
        """Refuse the form of another site's page (Fetch Metadata, RFC 6454). Raises Forbidden."""
        site, origin = self._headers.get("sec-fetch-site"), self._headers.get("origin")
        # `null` has no host; a proxy may give another Host than the browser sent.
        host, here = _host_of(origin or ""), self._headers.get("host", "")
        name = _PORT.sub("", host)
        is_ours = host != "" and (host == here or name in self._hosts)
        if site not in (None, "same-origin", "none") or (site is None and origin is not None and not is_ours):
            raise Forbidden(
                "Another site has sent this form, so nothing was changed. Open the console itself."
            )
        if host and not is_ours and name != _PORT.sub("", here):
            raise Forbidden(_OTHER_NAME)

    def session(self) -> str:
        """The session's token; empty without one."""
        return self._get(_SESSION)

    def keep_session(self, response: Response, token: str) -> None:
        self._set(_SESSION, response, token, SESSION_MAX_MS // 1_000)
        if self._name(_DEVICE) in self._cookies:
            self._set(_DEVICE, response, "", 0)

    def end_session(self, response: Response) -> None:
        self._set(_SESSION, response, "", 0)

    def form_secret(self) -> str:
        """The secret that forms are bound to before a session; a new one without a cookie."""
        return self._get(_FORM) or new_sign_in_token()

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
        name += self._suffix
        return f"__Host-{name}" if self.is_secure else name

    def _get(self, name: str) -> str:
        return self._cookies.get(self._name(name), "")

    def _set(self, name: str, response: Response, value: str, seconds: int | None) -> None:
        response.set_cookie(
            self._name(name),
            value,
            max_age=seconds,
            path="/",
            secure=self.is_secure,
            httponly=True,
            samesite="lax",
        )


def _cookies_of(header: str) -> dict[str, str]:
    """Cookies by name. Escapes stay, which no cookie of the service has: Python before 3.11.10 and
    3.12.6 reads them in a time that grows with the square of their number (CVE-2024-7592)."""
    pairs = (pair.partition("=") for pair in header.split(";"))
    return {name.strip(): value.strip().strip('"') for name, equals, value in pairs if equals}


def _host_of(origin: str) -> str:
    """The host of an origin, with its port; empty for `null`."""
    return origin.partition("://")[2]


def _is_loopback(host: str) -> bool:
    """Whether this host, with or without a port, is the browser's own machine."""
    name = _PORT.sub("", host).strip("[]")
    address = parse_address(name)
    return name == "localhost" or (address is not None and address.is_loopback)


class FormExpired(Forbidden):
    """The form's token is not of the current session."""

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
