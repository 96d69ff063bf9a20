"""PETSTORE_VALKEY_URL: valkey://[[user]:password@]host[:port][/database], valkeys:// with TLS, unix:///path."""

from __future__ import annotations

import ssl
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from petstore.core.errors import ConfigurationError

_PORT = 6_379
_OPTIONS = {"valkey": set[str](), "valkeys": {"ca"}, "unix": {"db"}}  # by the scheme
_ALSO = {"redis": "valkey", "rediss": "valkeys"}  # what providers of Valkey hand out
_ADVICE = (
    "PETSTORE_VALKEY_URL is not understood: {}; write valkey://host:6379/0, with user and password if needed"
    " (valkey://user:password@host), valkeys:// for TLS, or unix:///run/valkey/valkey.sock."
)
_NO_PORT = (
    "its port is not a number from 1 to 65535, unless the password has one of / ? # @ in it, which is written"
    " as %2F %3F %23 %40"
)


class ValkeyUrl(msgspec.Struct, frozen=True):
    """The `path` of a socket, or a host and a port."""

    host: str = ""
    port: int = _PORT
    path: str = ""
    database: int = 0
    user: str = ""
    password: str = ""
    tls: bool = False
    authority_file: str = ""

    def __str__(self) -> str:
        """The server's address without the password, for the log."""
        return self.path or f"{self.host}:{self.port}"

    def tls_context(self) -> ssl.SSLContext:
        """Verifies the server by `?ca=FILE` or the system's authorities. Raises OSError for the file."""
        return ssl.create_default_context(cafile=self.authority_file or None)


def parse_url(text: str) -> ValkeyUrl:
    """Read a URL. Raises ConfigurationError; its message never shows the password."""
    try:
        parts = urlsplit(text)
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise ConfigurationError(_ADVICE.format("its host is neither a name nor an address")) from None
    try:
        port = parts.port or _PORT
    except ValueError:  # its text may show a part of the password
        raise ConfigurationError(_ADVICE.format(_NO_PORT)) from None
    options = dict(parse_qsl(parts.query))
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    scheme = _ALSO.get(parts.scheme, parts.scheme)
    if scheme not in _OPTIONS:
        raise ConfigurationError(_ADVICE.format("it begins with none of valkey://, valkeys:// and unix://"))
    if parts.fragment or set(options) - _OPTIONS[scheme]:
        raise ConfigurationError(_ADVICE.format("there is an option that does not exist"))
    if scheme == "unix":
        if parts.hostname or len(parts.path) < 2:
            raise ConfigurationError(_ADVICE.format("unix:// takes an absolute path"))
        database = _database(options.get("db", ""))
        return ValkeyUrl(path=unquote(parts.path), database=database, user=user, password=password)
    if not parts.hostname:
        raise ConfigurationError(_ADVICE.format("a host is missing"))
    return ValkeyUrl(
        host=parts.hostname,
        port=port,
        database=_database(parts.path.removeprefix("/")),
        user=user,
        password=password,
        tls=scheme == "valkeys",
        authority_file=options.get("ca", ""),
    )


def usable(text: str) -> ValkeyUrl:
    """The URL with a readable CA file: without it every connection would look like an outage.

    Raises ConfigurationError.
    """
    url = parse_url(text)
    if url.tls:
        try:
            url.tls_context()
        except OSError as error:
            reason = error.strerror if type(error) is not ssl.SSLError else "it holds no certificate"
            raise ConfigurationError(
                f"PETSTORE_VALKEY_URL: {url.authority_file} can't be used as its ca: {reason}."
            ) from error
    return url


def _database(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 5):
        raise ConfigurationError(_ADVICE.format("a database is a small number"))
    return int(text)
